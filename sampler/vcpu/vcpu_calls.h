// The three things that polling a guest and its vCPUs asks of Xen. Behind an interface so that
// those who poll can be held against guests that are made up.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/mode.h"

namespace xenoscope::sampler {

// What Xen says of a vCPU without stopping it.
struct VcpuState {
  bool online = false;
  bool blocked = false;  // waits for an event
  bool running = false;  // on a pCPU now; neither: it waits for one
  uint64_t ran_ns = 0;   // since it was created
};

struct DomainState {
  bool dying = false;
  bool paused = false;    // by the tools
  bool shutdown = false;  // by itself; a guest that is suspended to be saved or migrated, too
  uint8_t shutdown_reason = 0;
  uint32_t online_vcpus = 0;
  uint32_t max_vcpus = 0;
};

// Where a vCPU was when Xen stopped it for reading.
struct VcpuContext {
  Address address = 0;
  Mode mode = Mode::kUser;   // of the guest: also while Xen was at work for it
  Address stack = 0;         // stack pointer
  Address frame = 0;         // frame pointer, where the code keeps one
  uint64_t page_tables = 0;  // of user or kernel mode, as cr3 names them: a PV domain's by the
                             // machine's frame, others' by the guest's
  bool five_levels = false;  // of page tables
};

class VcpuCalls {
 public:
  virtual ~VcpuCalls() = default;

  // 0, or -errno: -ESRCH: no such domain (or vCPU).
  virtual int Domain(DomainId domain, DomainState& state) = 0;
  virtual int State(VcpuRef vcpu, VcpuState& state) = 0;
  // Stops the vCPU, reads its registers and lets it go on, in one hypercall. 0 or -errno.
  virtual int Context(VcpuRef vcpu, VcpuContext& context) = 0;
};

// Real Xen, by domctl, in whichever of its interface's versions this Xen speaks: what is used here
// has been the same in all of them. Errors, each with what to do: built without Xen's libraries
// (Unimplemented), /dev/xen/privcmd missing (FailedPrecondition), not dom0 (PermissionDenied).
absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls();

}  // namespace xenoscope::sampler
