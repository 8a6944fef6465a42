#include "correlate/run_queues.h"

#include <algorithm>

namespace xenoscope::correlate {

RunQueues::Pcpu& RunQueues::PcpuAt(PcpuId pcpu) {
  if (pcpu.value >= pcpus_.size()) pcpus_.resize(size_t{pcpu.value} + 1);
  return pcpus_[pcpu.value];
}

uint32_t RunQueues::NumberOf(const WaitingSet& set) {
  const auto found = numbers_.find(set);
  if (found != numbers_.end()) return found->second;
  if (sets_.size() >= kMaxSets) return kOthers;
  const auto number = static_cast<uint32_t>(sets_.size());
  sets_.push_back(set);
  numbers_.emplace(set, number);
  return number;
}

void RunQueues::Note(Pcpu& pcpu, Tsc at) { pcpu.sets.Add(at, NumberOf(pcpu.waiting)); }

void RunQueues::OnState(const VcpuTrack& track) {
  if (IsIdle(track.ref)) return;
  if (const auto waits = waits_for_.find(track.ref); waits != waits_for_.end()) {
    Pcpu& pcpu = PcpuAt(waits->second);
    std::erase(pcpu.waiting, track.ref);
    Note(pcpu, track.since);
    waits_for_.erase(waits);
  }
  if (track.state != TimelineState::kRunnable) return;
  Pcpu& pcpu = PcpuAt(track.pcpu);
  pcpu.waiting.insert(std::ranges::upper_bound(pcpu.waiting, track.ref), track.ref);
  Note(pcpu, track.since);
  waits_for_[track.ref] = track.pcpu;
}

void RunQueues::Forget(PcpuId pcpu, Tsc t) {
  if (pcpu.value < pcpus_.size()) pcpus_[pcpu.value].sets.Forget(t);
}

}  // namespace xenoscope::correlate
