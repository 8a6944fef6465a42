#include "sampler/xen/foreign_memory.h"

#include <utility>

#include "base/error.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xenforeignmemory.h>
}

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/shared_library.h"

namespace xenoscope::sampler {

// The library's functions, and a handle of it.
class ForeignMemory::Library {
 public:
  absl::Status Open() {
    decltype(&xenforeignmemory_open) open = nullptr;
    decltype(&xenforeignmemory_close) close = nullptr;
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load("libxenforeignmemory.so.1", "mapped pages"));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xenforeignmemory_open", open, "xenforeignmemory_close",
                                           close, "xenforeignmemory_map", map,
                                           "xenforeignmemory_unmap", unmap));
    handle = {open(nullptr, 0), close};
    return handle == nullptr ? ErrnoError(errno, "cannot open /dev/xen/privcmd to map memory")
                             : absl::OkStatus();
  }

  std::unique_ptr<xenforeignmemory_handle, decltype(&xenforeignmemory_close)> handle{nullptr,
                                                                                     nullptr};
  decltype(&xenforeignmemory_map) map = nullptr;
  decltype(&xenforeignmemory_unmap) unmap = nullptr;
};

absl::StatusOr<std::unique_ptr<ForeignMemory>> ForeignMemory::Open() {
  auto library = std::make_unique<Library>();
  XENOSCOPE_RETURN_IF_ERROR(library->Open());
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<ForeignMemory>(new ForeignMemory(std::move(library)));
}

std::byte* ForeignMemory::Map(DomainId domain, int protection, std::span<const uint64_t> frames) {
  static_assert(sizeof(xen_pfn_t) == sizeof(uint64_t));
  std::vector<int> errors(frames.size());
  auto* const pages =
      static_cast<std::byte*>(library_->map(library_->handle.get(), domain.value, protection,
                                            frames.size(), frames.data(), errors.data()));
  if (pages == nullptr) return nullptr;
  const auto failed = std::ranges::find_if(errors, [](int error) { return error != 0; });
  if (failed == errors.end()) return pages;
  Unmap(pages, frames.size());
  errno = -*failed;
  return nullptr;
}

void ForeignMemory::Unmap(const std::byte* pages, size_t count) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is not written to
  library_->unmap(library_->handle.get(), const_cast<std::byte*>(pages), count);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

class ForeignMemory::Library {};

absl::StatusOr<std::unique_ptr<ForeignMemory>> ForeignMemory::Open() { return BuiltWithoutXen(); }
std::byte* ForeignMemory::Map(DomainId /*domain*/, int /*protection*/,
                              std::span<const uint64_t> /*frames*/) {
  return nullptr;
}
void ForeignMemory::Unmap(const std::byte* /*pages*/, size_t /*count*/) {}

}  // namespace xenoscope::sampler

#endif

namespace xenoscope::sampler {

ForeignMemory::ForeignMemory(std::unique_ptr<Library> library) : library_(std::move(library)) {}
ForeignMemory::~ForeignMemory() = default;

}  // namespace xenoscope::sampler
