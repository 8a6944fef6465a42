#include "sampler/xen/domctl_handle.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/hypercalls.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<DomctlHandle>> DomctlHandle::Open(std::string_view purpose) {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XencallHandle> calls, XencallHandle::Open());
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<DomctlHandle> handle(new DomctlHandle(std::move(calls)));
  handle->argument_ = handle->Allocate<Domctl>();
  if (handle->argument_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
  XENOSCOPE_RETURN_IF_ERROR(handle->FindVersion(purpose));
  return handle;
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

Domctl& DomctlHandle::Prepare(DomctlOp op, DomainId domain) {
  *argument_ = {};
  argument_->op = op;
  argument_->version = version_;
  argument_->domain = domain.value;
  return *argument_;
}

int DomctlHandle::Call() {
  return std::min(calls_->Call(hypercall::kDomctl, XenAddressOf(argument_)), 0);
}

}  // namespace xenoscope::sampler
