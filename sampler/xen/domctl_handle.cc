#include "sampler/xen/domctl_handle.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xencall.h>
}

#include <cerrno>

#include "base/hypercalls.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<DomctlHandle>> DomctlHandle::Open(std::string_view purpose) {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xencall_handle* const calls = xencall_open(nullptr, 0);
  if (calls == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<DomctlHandle> handle(new DomctlHandle(calls));
  handle->argument_ = handle->Allocate<Domctl>();
  if (handle->argument_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
  XENOSCOPE_RETURN_IF_ERROR(handle->FindVersion(purpose));
  return handle;
}

DomctlHandle::~DomctlHandle() {
  for (void* const buffer : buffers_) xencall_free_buffer(calls_, buffer);
  xencall_close(calls_);
}

// Xen checks the version before anything else, and refuses all but its own.
absl::Status DomctlHandle::FindVersion(std::string_view purpose) {
  for (; version_ <= kLastDomctlVersion; ++version_) {
    Prepare(DomctlOp::kGetDomainInfo, kDom0);
    const int error = Call();
    if (error == -EACCES) continue;
    if (error == -EPERM) return PermissionError("Xen does not let this domain {}", purpose);
    return error == 0 ? absl::OkStatus() : ErrnoError(-error, "Xen does not list its domains");
  }
  return UnimplementedError("this Xen's domctl version is above {:#x}: use a newer xenoscope",
                            kLastDomctlVersion);
}

void* DomctlHandle::AllocateBytes(size_t bytes) {
  void* const buffer = xencall_alloc_buffer(calls_, bytes);
  if (buffer != nullptr) buffers_.push_back(buffer);
  return buffer;
}

Domctl& DomctlHandle::Prepare(DomctlOp op, DomainId domain) {
  *argument_ = {};
  argument_->op = op;
  argument_->version = version_;
  argument_->domain = domain.value;
  return *argument_;
}

int DomctlHandle::Call() {
  return xencall1(calls_, hypercall::kDomctl, XenAddressOf(argument_)) < 0 ? -errno : 0;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<DomctlHandle>> DomctlHandle::Open(std::string_view /*purpose*/) {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}
DomctlHandle::~DomctlHandle() = default;
Domctl& DomctlHandle::Prepare(DomctlOp /*op*/, DomainId /*domain*/) { return *argument_; }
int DomctlHandle::Call() { return -1; }
void* DomctlHandle::AllocateBytes(size_t /*bytes*/) { return nullptr; }

}  // namespace xenoscope::sampler

#endif
