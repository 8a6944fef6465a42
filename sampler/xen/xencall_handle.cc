#include "sampler/xen/xencall_handle.h"

#include <utility>

#include "base/error.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xencall.h>
}

#include <cerrno>

#include "base/shared_library.h"

namespace xenoscope::sampler {

// The library's functions, and a handle of it.
class XencallHandle::Library {
 public:
  absl::Status Open() {
    decltype(&xencall_open) open = nullptr;
    decltype(&xencall_close) close = nullptr;
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load("libxencall.so.1", "hypercalls"));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xencall_open", open, "xencall_close", close,
                                           "xencall_alloc_buffer", allocate, "xencall_free_buffer",
                                           free, "xencall1", call1, "xencall2", call2));
    handle = {open(nullptr, 0), close};
    return handle == nullptr ? ErrnoError(errno, "cannot open /dev/xen/privcmd") : absl::OkStatus();
  }

  std::unique_ptr<xencall_handle, decltype(&xencall_close)> handle{nullptr, nullptr};
  decltype(&xencall_alloc_buffer) allocate = nullptr;
  decltype(&xencall_free_buffer) free = nullptr;
  decltype(&xencall1) call1 = nullptr;
  decltype(&xencall2) call2 = nullptr;
};

absl::StatusOr<std::unique_ptr<XencallHandle>> XencallHandle::Open() {
  auto library = std::make_unique<Library>();
  XENOSCOPE_RETURN_IF_ERROR(library->Open());
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<XencallHandle>(new XencallHandle(std::move(library)));
}

XencallHandle::~XencallHandle() {
  for (void* const buffer : buffers_) library_->free(library_->handle.get(), buffer);
}

void* XencallHandle::Allocate(size_t bytes) {
  void* const buffer = library_->allocate(library_->handle.get(), bytes);
  if (buffer != nullptr) buffers_.push_back(buffer);
  return buffer;
}

int XencallHandle::Call(uint32_t number, uint64_t argument) {
  const int result = library_->call1(library_->handle.get(), number, argument);
  return result < 0 ? -errno : result;
}

int XencallHandle::Call(uint32_t number, uint64_t first, uint64_t second) {
  const int result = library_->call2(library_->handle.get(), number, first, second);
  return result < 0 ? -errno : result;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

class XencallHandle::Library {};

absl::StatusOr<std::unique_ptr<XencallHandle>> XencallHandle::Open() { return BuiltWithoutXen(); }
XencallHandle::~XencallHandle() = default;
void* XencallHandle::Allocate(size_t /*bytes*/) { return nullptr; }
int XencallHandle::Call(uint32_t /*number*/, uint64_t /*argument*/) { return -1; }
int XencallHandle::Call(uint32_t /*number*/, uint64_t /*first*/, uint64_t /*second*/) { return -1; }

}  // namespace xenoscope::sampler

#endif

namespace xenoscope::sampler {

XencallHandle::XencallHandle(std::unique_ptr<Library> library) : library_(std::move(library)) {}

}  // namespace xenoscope::sampler
