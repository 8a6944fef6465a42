// Which vCPUs wait for each pCPU: those that are runnable and last ran there, or were woken there.
// A scheduler that keeps one queue for several pCPUs may take one from there by another.
//
// Memory: a number for each change within the running interval that is going on, and the sets that
// differ.
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

using WaitingSet = std::vector<VcpuRef>;  // in order

class RunQueues {
 public:
  // More sets than these are not told apart: they are kOthers.
  static constexpr size_t kMaxSets = 4096;
  // ... and no more changes in one running interval than so many, the last.
  static constexpr size_t kMaxSteps = 65536;
  static constexpr uint32_t kEmptySet = 0;
  static constexpr uint32_t kOthers = 1;

  // The vCPU has just entered its state. O(those that wait for the pCPU).
  void OnState(const VcpuTrack& track);

  // Calls visit(part, set) for the parts of a range on the pCPU that differ in who waits. What is
  // before the range of the last Forget is not known any more.
  template <typename Visitor>
  void ForEach(PcpuId pcpu, TscRange range, Visitor visit) const;
  // Nobody asks for what was before `t` on the pCPU any more.
  void Forget(PcpuId pcpu, Tsc t);

  // Who waits for the pCPU now.
  uint32_t Now(PcpuId pcpu) const {
    if (pcpu.value >= pcpus_.size() || pcpus_[pcpu.value].steps.empty()) return kEmptySet;
    return pcpus_[pcpu.value].steps.back().set;
  }

  // By number; the first is empty, the second stands for kOthers.
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
  absl::flat_hash_map<VcpuRef, PcpuId> waits_for_;  // of those that wait
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
