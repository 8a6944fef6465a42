#include "sampler/xen/sysctl_handle.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/hypercalls.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<SysctlHandle>> SysctlHandle::Open(std::string_view purpose) {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XencallHandle> calls, XencallHandle::Open());
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<SysctlHandle> handle(new SysctlHandle(std::move(calls)));
  handle->argument_ = static_cast<Sysctl*>(handle->Allocate(sizeof(Sysctl)));
  if (handle->argument_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
  XENOSCOPE_RETURN_IF_ERROR(handle->FindVersion(purpose));
  return handle;
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

Sysctl& SysctlHandle::Prepare(SysctlOp op) {
  *argument_ = {};
  argument_->op = op;
  argument_->version = version_;
  return *argument_;
}

int SysctlHandle::Call() {
  return std::min(calls_->Call(hypercall::kSysctl, XenAddressOf(argument_)), 0);
}

}  // namespace xenoscope::sampler
