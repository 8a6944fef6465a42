// The hypercall __HYPERVISOR_sysctl, in the version of its interface that this Xen has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/xen/sysctl_abi.h"

struct xencall_handle;

namespace xenoscope::sampler {

class SysctlHandle {
 public:
  // Opens real Xen, and finds the version. `purpose` completes "Xen does not let this domain".
  // Errors, each with what to do: built without Xen's libraries (Unimplemented), /dev/xen/privcmd
  // missing (FailedPrecondition), not dom0 (PermissionDenied).
  static absl::StatusOr<std::unique_ptr<SysctlHandle>> Open(std::string_view purpose);
  SysctlHandle(const SysctlHandle&) = delete;
  SysctlHandle& operator=(const SysctlHandle&) = delete;
  ~SysctlHandle();

  // Returns memory that Xen may read and write, which lives as long as this; null: there is none.
  void* Allocate(size_t bytes);
  // Begins an operation. Returns the argument, which is 0 but for the operation.
  Sysctl& Prepare(SysctlOp op);
  // Makes the hypercall with the argument. Returns 0 or -errno.
  int Call();

 private:
  explicit SysctlHandle(xencall_handle* calls) : calls_(calls) {}
  absl::Status FindVersion(std::string_view purpose);

  xencall_handle* calls_;
  std::vector<void*> buffers_;
  Sysctl* argument_ = nullptr;
  uint32_t version_ = kFirstSysctlVersion;
};

}  // namespace xenoscope::sampler
