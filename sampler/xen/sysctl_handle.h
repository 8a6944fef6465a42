// The hypercall __HYPERVISOR_sysctl, in the version of its interface that this Xen has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "sampler/xen/sysctl_abi.h"
#include "sampler/xen/xencall_handle.h"

namespace xenoscope::sampler {

class SysctlHandle {
 public:
  // Opens real Xen, and finds the version. `purpose` completes "Xen does not let this domain".
  // Errors, each with what to do: those of XencallHandle::Open, /dev/xen/privcmd missing
  // (FailedPrecondition), not dom0 (PermissionDenied).
  static absl::StatusOr<std::unique_ptr<SysctlHandle>> Open(std::string_view purpose);

  // Returns memory that Xen may read and write, which lives as long as this; null: there is none.
  void* Allocate(size_t bytes) { return calls_->Allocate(bytes); }
  // Begins an operation. Returns the argument, which is 0 but for the operation.
  Sysctl& Prepare(SysctlOp op);
  // Makes the hypercall with the argument. Returns 0 or -errno.
  int Call();

 private:
  explicit SysctlHandle(std::unique_ptr<XencallHandle> calls) : calls_(std::move(calls)) {}
  absl::Status FindVersion(std::string_view purpose);

  std::unique_ptr<XencallHandle> calls_;
  Sysctl* argument_ = nullptr;
  uint32_t version_ = kFirstSysctlVersion;
};

}  // namespace xenoscope::sampler
