// Follows which vCPUs wait for each pCPU: those that are runnable and last ran there, or were woken
// there. A scheduler with one queue for several pCPUs may run such a vCPU on another pCPU.
//
// Memory: a number for each change within the current running intervals, and the different sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/step_history.h"
#include "correlate/timeline.h"

namespace xenoscope::correlate {

// vCPUs, in their order.
using WaitingSet = std::vector<VcpuRef>;

class RunQueues {
 public:
  // The number of sets that are told apart; all others are kOthers.
  static constexpr size_t kMaxSets = 4096;
  static constexpr uint32_t kEmptySet = 0;
  static constexpr uint32_t kOthers = 1;

  // Notes that the vCPU has entered its state. O(vCPUs that wait for the pCPU).
  void OnState(const VcpuTrack& track);

  // Calls visit(part, set) for the parts of a range on the pCPU that differ in the vCPUs that wait.
  // Changes before the time of the last Forget are not known any more.
  template <typename Visitor>
  void ForEach(PcpuId pcpu, TscRange range, Visitor visit) const;
  // Forgets the changes before `t` on the pCPU.
  void Forget(PcpuId pcpu, Tsc t);

  // Returns the number of the set of vCPUs that wait for the pCPU now.
  [[nodiscard]] uint32_t Now(PcpuId pcpu) const {
    return pcpu.value < pcpus_.size() ? pcpus_[pcpu.value].sets.Now() : kEmptySet;
  }

  // The sets, by number; the first is empty, the second stands for kOthers.
  const std::vector<WaitingSet>& sets() const { return sets_; }

 private:
  struct Pcpu {
    WaitingSet waiting;
    StepHistory sets;  // numbers of what waited
  };

  Pcpu& PcpuAt(PcpuId pcpu);
  uint32_t NumberOf(const WaitingSet& set);
  void Note(Pcpu& pcpu, Tsc at);

  std::vector<Pcpu> pcpus_;                         // by number
  absl::flat_hash_map<VcpuRef, PcpuId> waits_for_;  // by waiting vCPU: the pCPU
  std::vector<WaitingSet> sets_{{}, {}};
  std::map<WaitingSet, uint32_t> numbers_{{{}, kEmptySet}};
};

template <typename Visitor>
void RunQueues::ForEach(PcpuId pcpu, TscRange range, Visitor visit) const {
  if (pcpu.value < pcpus_.size()) return pcpus_[pcpu.value].sets.ForEach(range, visit);
  if (!range.Empty()) visit(range, kEmptySet);
}

}  // namespace xenoscope::correlate
