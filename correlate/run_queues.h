// Follows which vCPUs wait for each pCPU: those that are runnable and last ran there, or were woken
// there. A scheduler with one queue for several pCPUs may run such a vCPU on another pCPU.
//
// Memory: a number for each change within the current running intervals, and the different sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"

namespace xenoscope::correlate {

// vCPUs, in their order.
using WaitingSet = std::vector<VcpuRef>;

class RunQueues {
 public:
  // The number of sets that are told apart; all others are kOthers.
  static constexpr size_t kMaxSets = 4096;
  // The number of changes that are kept of one running interval: the last ones.
  static constexpr size_t kMaxSteps = 65536;
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
    if (pcpu.value >= pcpus_.size() || pcpus_[pcpu.value].steps.empty()) return kEmptySet;
    return pcpus_[pcpu.value].steps.back().set;
  }

  // The sets, by number; the first is empty, the second stands for kOthers.
  const std::vector<WaitingSet>& sets() const { return sets_; }

 private:
  struct Step {
    Tsc since;
    uint32_t set = kEmptySet;
  };
  struct Pcpu {
    WaitingSet waiting;
    std::deque<Step> steps;
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
  uint32_t set = kEmptySet;
  Tsc from = range.begin;
  if (pcpu.value < pcpus_.size()) {
    for (const Step& step : pcpus_[pcpu.value].steps) {
      if (step.since >= range.end) break;
      if (step.since > from) {
        visit(TscRange{from, step.since}, set);
        from = step.since;
      }
      set = step.set;
    }
  }
  if (from < range.end) visit(TscRange{from, range.end}, set);
}

}  // namespace xenoscope::correlate
