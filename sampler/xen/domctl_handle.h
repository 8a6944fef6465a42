// The hypercall __HYPERVISOR_domctl, in the version of its interface that this Xen has.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "sampler/xen/domctl_abi.h"
#include "sampler/xen/xencall_handle.h"

namespace xenoscope::sampler {

class DomctlHandle {
 public:
  // Opens real Xen, and finds the version. `purpose` completes "Xen does not let this domain".
  // Errors, each with what to do: those of XencallHandle::Open, /dev/xen/privcmd missing
  // (FailedPrecondition), not dom0 (PermissionDenied).
  static absl::StatusOr<std::unique_ptr<DomctlHandle>> Open(std::string_view purpose);

  // Returns memory that Xen may read and write, which lives as long as this; null: there is none.
  template <typename T>
  T* Allocate() {
    return static_cast<T*>(calls_->Allocate(sizeof(T)));
  }
  // Begins an operation. Returns the argument, which is 0 but for the operation and the domain.
  Domctl& Prepare(DomctlOp op, DomainId domain);
  // Makes the hypercall with the argument. Returns 0 or -errno.
  int Call();

 private:
  explicit DomctlHandle(std::unique_ptr<XencallHandle> calls) : calls_(std::move(calls)) {}
  absl::Status FindVersion(std::string_view purpose);

  std::unique_ptr<XencallHandle> calls_;
  Domctl* argument_ = nullptr;
  uint32_t version_ = kFirstDomctlVersion;
};

}  // namespace xenoscope::sampler
