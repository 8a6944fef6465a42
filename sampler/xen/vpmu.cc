#include "sampler/xen/vpmu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "sampler/perf/perf_calls.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {

VpmuSetup ReadVpmuSetup(std::string mode, uint32_t pcpus) {
  VpmuSetup setup;
  setup.mode = std::move(mode);
  setup.pcpus = pcpus;
  setup.vcpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
  setup.watchdog = ReadSmallFile("/proc/sys/kernel/nmi_watchdog") == "1";
  if (setup.mode != kVpmuAll) return setup;
  if (const auto calls = OpenVcpuCalls(); calls.ok()) {
    setup.pinned = AreDom0VcpusPinned(**calls, setup.vcpus);
  }
  return setup;
}

std::optional<bool> AreDom0VcpusPinned(VcpuCalls& calls, uint32_t vcpus) {
  std::vector<uint32_t> pcpus;
  for (uint32_t vcpu = 0; vcpu < vcpus; ++vcpu) {
    if (calls.Affinity({kDom0, VcpuId{static_cast<uint16_t>(vcpu)}}, pcpus) != 0) {
      return std::nullopt;
    }
    if (pcpus != std::vector<uint32_t>{vcpu}) return false;
  }
  return true;
}

std::vector<std::string> VpmuProblems(const VpmuSetup& setup) {
  std::vector<std::string> problems;
  if (setup.mode.empty() || setup.mode == kVpmuOff) return problems;
  if (setup.watchdog) {
    problems.emplace_back(
        "Linux's NMI watchdog holds a counter: run `sysctl kernel.nmi_watchdog=0`");
  }
  if (setup.mode != kVpmuAll) return problems;
  if (setup.pcpus != 0 && setup.vcpus != setup.pcpus) {
    problems.push_back(fmt::format(
        "dom0 has {} vCPUs and the host {} pCPUs, so samples of several pCPUs are taken for one: "
        "boot Xen with dom0_max_vcpus={} dom0_vcpus_pin",
        setup.vcpus, setup.pcpus, setup.pcpus));
  } else if (setup.pinned == false) {
    problems.emplace_back(
        "dom0's vCPUs are not pinned, each to the pCPU of its number, so samples are taken for "
        "another pCPU: boot Xen with dom0_vcpus_pin, or run `xl vcpu-pin 0 N N` for each vCPU N");
  }
  return problems;
}

}  // namespace xenoscope::sampler
