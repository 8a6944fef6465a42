// The hypercall __HYPERVISOR_domctl, in the version of its interface that this Xen has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "sampler/xen/domctl_abi.h"

struct xencall_handle;

namespace xenoscope::sampler {

// Returns the address of memory for Xen.
inline uint64_t XenAddressOf(const void* memory) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
  return reinterpret_cast<uint64_t>(memory);
}

class DomctlHandle {
 public:
  // Opens real Xen, and finds the version. `purpose` completes "Xen does not let this domain".
  // Errors, each with what to do: built without Xen's libraries (Unimplemented), /dev/xen/privcmd
  // missing (FailedPrecondition), not dom0 (PermissionDenied).
  static absl::StatusOr<std::unique_ptr<DomctlHandle>> Open(std::string_view purpose);
  DomctlHandle(const DomctlHandle&) = delete;
  DomctlHandle& operator=(const DomctlHandle&) = delete;
  ~DomctlHandle();

  // Returns memory that Xen may read and write, which lives as long as this; null: there is none.
  template <typename T>
  T* Allocate() {
    return static_cast<T*>(AllocateBytes(sizeof(T)));
  }
  // Begins an operation. Returns the argument, which is 0 but for the operation and the domain.
  Domctl& Prepare(DomctlOp op, DomainId domain);
  // Makes the hypercall with the argument. Returns 0 or -errno.
  int Call();

 private:
  explicit DomctlHandle(xencall_handle* calls) : calls_(calls) {}
  absl::Status FindVersion(std::string_view purpose);
  void* AllocateBytes(size_t bytes);

  xencall_handle* calls_;
  std::vector<void*> buffers_;
  Domctl* argument_ = nullptr;
  uint32_t version_ = kFirstDomctlVersion;
};

}  // namespace xenoscope::sampler
