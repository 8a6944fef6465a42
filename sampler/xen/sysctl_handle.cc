#include "sampler/xen/sysctl_handle.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xencall.h>
}

#include <cerrno>

#include "base/hypercalls.h"
#include "sampler/xen/domctl_handle.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<SysctlHandle>> SysctlHandle::Open(std::string_view purpose) {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xencall_handle* const calls = xencall_open(nullptr, 0);
  if (calls == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<SysctlHandle> handle(new SysctlHandle(calls));
  handle->argument_ = static_cast<Sysctl*>(handle->Allocate(sizeof(Sysctl)));
  if (handle->argument_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
  XENOSCOPE_RETURN_IF_ERROR(handle->FindVersion(purpose));
  return handle;
}

SysctlHandle::~SysctlHandle() {
  for (void* const buffer : buffers_) xencall_free_buffer(calls_, buffer);
  xencall_close(calls_);
}

// Xen checks the version before anything else, and refuses all but its own. What the operation
// itself returns does not matter: a Xen without livepatches does not have it.
absl::Status SysctlHandle::FindVersion(std::string_view purpose) {
  for (; version_ <= kLastSysctlVersion; ++version_) {
    Prepare(SysctlOp::kLivepatch).u.livepatches.operation = kLivepatchList;
    const int error = Call();
    if (error == -EACCES) continue;
    if (error == -EPERM) return PermissionError("Xen does not let this domain {}", purpose);
    return absl::OkStatus();
  }
  return UnimplementedError("this Xen's sysctl version is above {:#x}: use a newer xenoscope",
                            kLastSysctlVersion);
}

void* SysctlHandle::Allocate(size_t bytes) {
  void* const buffer = xencall_alloc_buffer(calls_, bytes);
  if (buffer != nullptr) buffers_.push_back(buffer);
  return buffer;
}

Sysctl& SysctlHandle::Prepare(SysctlOp op) {
  *argument_ = {};
  argument_->op = op;
  argument_->version = version_;
  return *argument_;
}

int SysctlHandle::Call() {
  return xencall1(calls_, hypercall::kSysctl, XenAddressOf(argument_)) < 0 ? -errno : 0;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<SysctlHandle>> SysctlHandle::Open(std::string_view /*purpose*/) {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}
SysctlHandle::~SysctlHandle() = default;
void* SysctlHandle::Allocate(size_t /*bytes*/) { return nullptr; }
Sysctl& SysctlHandle::Prepare(SysctlOp /*op*/) { return *argument_; }
int SysctlHandle::Call() { return -1; }

}  // namespace xenoscope::sampler

#endif
