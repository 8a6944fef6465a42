// The three calls to Xen for polling a guest and its vCPUs, as an interface, so that tests can make
// guests up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/user_registers.h"

namespace xenoscope::sampler {

// The state of a vCPU, which Xen reports without stopping it.
struct VcpuState {
  bool online = false;
  bool blocked = false;  // whether it waits for an event
  bool running = false;  // whether it is on a pCPU now; neither: it waits for a pCPU
  uint64_t ran_ns = 0;   // ns that it ran since it was created
};

struct DomainState {
  bool dying = false;
  bool paused = false;    // whether the toolstack paused it
  bool shutdown = false;  // whether it shut down, or suspended itself to be saved or migrated
  uint8_t shutdown_reason = 0;
  uint32_t online_vcpus = 0;
  uint32_t max_vcpus = 0;
};

// The registers of a vCPU that Xen stopped for reading.
struct VcpuContext {
  Address address = 0;
  Mode mode = Mode::kUser;  // mode of the guest, even while Xen worked for it
  Address stack = 0;        // stack pointer
  Address frame = 0;        // frame pointer, if the code keeps one
  // The top page table of the mode, as in cr3: its machine frame for a PV domain, else its guest
  // frame.
  uint64_t page_tables = 0;
  bool five_levels = false;   // whether page tables have five levels
  UserRegisters registers{};  // these registers and all others, for unwinding
};

class VcpuCalls {
 public:
  virtual ~VcpuCalls() = default;

  // Reads the state of a domain. Returns 0 or -errno; -ESRCH: no such domain (or vCPU).
  virtual int Domain(DomainId domain, DomainState& state) = 0;
  virtual int State(VcpuRef vcpu, VcpuState& state) = 0;
  // Stops the vCPU, reads its registers and lets it go on, in one hypercall. Returns 0 or -errno.
  virtual int Context(VcpuRef vcpu, VcpuContext& context) = 0;
  // Reads which of the first 1024 pCPUs the vCPU may run on (hard affinity). Returns 0 or -errno.
  virtual int Affinity(VcpuRef vcpu, std::vector<uint32_t>& pcpus) = 0;
};

// Opens real Xen, by domctl, in the version of the interface that this Xen has: what is used here
// is the same in all of them. Errors, each with what to do: built without Xen's libraries
// (Unimplemented), /dev/xen/privcmd missing (FailedPrecondition), not dom0 (PermissionDenied).
absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls();

}  // namespace xenoscope::sampler
