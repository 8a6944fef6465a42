#include "correlate/context_switches.h"

#include <cstddef>

namespace xenoscope::correlate {

void ContextSwitches::OnState(const VcpuTrack& vcpu, TimelineState before) {
  const bool stops = before == TimelineState::kRunning && vcpu.state != TimelineState::kRunning;
  const bool starts = before != TimelineState::kRunning && vcpu.state == TimelineState::kRunning;
  if (!stops && !starts) return;
  if (vcpu.pcpu.value >= pcpus_.size()) pcpus_.resize(size_t{vcpu.pcpu.value} + 1);
  Pcpu& pcpu = pcpus_[vcpu.pcpu.value];
  if (starts) {
    pcpu.to = pcpu.from == nullptr || pcpu.from == &vcpu ? nullptr : &vcpu;
  } else {
    pcpu = {};
    if (vcpu.state != TimelineState::kLost && !IsIdle(vcpu.ref)) pcpu.from = &vcpu;
  }
}

std::optional<ContextSwitch> ContextSwitches::Take(const trace::Record& record,
                                                   const VcpuTrack& current) {
  if (record.pcpu.value >= pcpus_.size()) return std::nullopt;
  Pcpu& pcpu = pcpus_[record.pcpu.value];
  if (pcpu.to == nullptr) return std::nullopt;
  const ContextSwitch found{{current.since, record.tsc}, record.pcpu, pcpu.from, pcpu.to};
  pcpu = {};
  // A guest that has been entered since has been switched to long ago.
  const bool is_first = found.to == &current && current.segment_since == current.since;
  if (!is_first || IsIdle(current.ref) || found.range.Empty() ||
      found.range.Length() > kMaxLength) {
    return std::nullopt;
  }
  return found;
}

}  // namespace xenoscope::correlate
