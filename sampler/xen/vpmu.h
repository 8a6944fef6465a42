// What Xen's vPMU lets dom0 sample with hardware counters, and what keeps it from that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

struct VpmuSetup {
  // "self": dom0, "hv": also Xen's work for it, "all": Xen and all domains; "off"; empty: this
  // Linux knows of no vPMU.
  std::string mode;
  uint32_t pcpus = 0;
  uint32_t vcpus = 0;  // dom0's
  // Whether each vCPU of dom0 may run only on the pCPU of its number; nothing: not known.
  std::optional<bool> pinned{};
  bool watchdog = false;  // whether Linux's NMI watchdog holds a counter
};

// Returns the setup of this dom0, whose vPMU has the mode, on a host with so many pCPUs (0: not
// known).
VpmuSetup ReadVpmuSetup(std::string mode, uint32_t pcpus);

// Returns whether each of the first `vcpus` vCPUs of dom0 may run only on the pCPU of its number
// (hard affinity); nothing when Xen does not say. O(vcpus) hypercalls.
std::optional<bool> AreDom0VcpusPinned(VcpuCalls& calls, uint32_t vcpus);

// Returns what keeps the mode from sampling what it should, a clause each, with what to do.
std::vector<std::string> VpmuProblems(const VpmuSetup& setup);

}  // namespace xenoscope::sampler
