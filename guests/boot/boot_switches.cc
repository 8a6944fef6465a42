#include "guests/boot/boot_switches.h"

#include <algorithm>

namespace xenoscope::guests {

BootSwitches::BootSwitches(DomainId domain, const Boot& boot) {
  names_.reserve(1 + boot.parts.size());
  for (const BootPart& part : boot.parts) names_.push_back(part.name);
  const std::vector<BootCpu>& cpus = boot.kernel.cpus;
  switches_.reserve(boot.parts.size() + 2 * cpus.size() + 1);
  const auto add = [&](uint32_t cpu, Tsc at, size_t thread) {
    switches_.push_back({{domain, VcpuId{cpu}}, at, static_cast<uint32_t>(thread)});
  };
  uint32_t cpu = 0;  // where kernels begin
  size_t moved = 0;
  for (size_t i = 0; i < boot.parts.size(); ++i) {
    const TscRange when = boot.parts[i].when;
    add(cpu, when.begin, i + 1);
    for (; moved < cpus.size() && cpus[moved].at < when.end; ++moved) {
      if (cpus[moved].cpu == cpu) continue;
      const Tsc at = std::max(cpus[moved].at, when.begin);
      add(cpu, at, 0);
      cpu = cpus[moved].cpu;
      add(cpu, at, i + 1);
    }
  }
  add(cpu, boot.kernel.end, 0);
}

std::optional<correlate::ThreadSwitch> BootSwitches::Next(Tsc until) {
  if (next_ == switches_.size() || switches_[next_].at >= until) return std::nullopt;
  return switches_[next_++];
}

}  // namespace xenoscope::guests
