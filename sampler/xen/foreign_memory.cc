#include "sampler/xen/foreign_memory.h"

#include <utility>

#include "base/error.h"

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
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load("libxenforeignmemory.so.1", "mapped pages"));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xenforeignmemory_open", open_));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xenforeignmemory_close", close_));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xenforeignmemory_map", map));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xenforeignmemory_unmap", unmap));
    handle = open_(nullptr, 0);
    return handle == nullptr ? ErrnoError(errno, "cannot open /dev/xen/privcmd to map memory")
                             : absl::OkStatus();
  }
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) close_(handle);
  }

  xenforeignmemory_handle* handle = nullptr;
  decltype(&xenforeignmemory_map) map = nullptr;
  decltype(&xenforeignmemory_unmap) unmap = nullptr;

 private:
  decltype(&xenforeignmemory_open) open_ = nullptr;
  decltype(&xenforeignmemory_close) close_ = nullptr;
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
  auto* const pages = static_cast<std::byte*>(library_->map(
      library_->handle, domain.value, protection, frames.size(), frames.data(), errors.data()));
  if (pages == nullptr) return nullptr;
  const auto failed = std::ranges::find_if(errors, [](int error) { return error != 0; });
  if (failed == errors.end()) return pages;
  Unmap(pages, frames.size());
  errno = -*failed;
  return nullptr;
}

void ForeignMemory::Unmap(const std::byte* pages, size_t count) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is not written to
  library_->unmap(library_->handle, const_cast<std::byte*>(pages), count);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

class ForeignMemory::Library {};

absl::StatusOr<std::unique_ptr<ForeignMemory>> ForeignMemory::Open() {
  return UnimplementedError(
      "this xenoscope was built without Xen's headers: install libxen-dev and build again");
}
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
