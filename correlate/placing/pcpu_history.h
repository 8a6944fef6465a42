// Which vCPUs one pCPU ran, as far back as the longest bracket reaches. What they did there is in
// the histories of the vCPUs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/history_queue.h"

namespace xenoscope::correlate {

// Neighbouring intervals of one vCPU on one pCPU.
struct PcpuRun {
  TscRange range;
  VcpuRef vcpu;
  uint32_t vcpu_index = 0;      // VcpuTrack::index
  uint64_t first_interval = 0;  // the number of the first one in the vCPU's history
};

class PcpuHistory {
 public:
  // Adds the range of an interval, which has the number `number` in the history of its vCPU. It
  // begins where the last one ended, or later. O(1).
  void Add(TscRange range, VcpuRef vcpu, uint32_t vcpu_index, uint64_t number) {
    const bool continues = !runs_.empty() && runs_.back().vcpu_index == vcpu_index &&
                           runs_.back().range.end == range.begin;
    if (continues) {
      runs_.back().range.end = range.end;
    } else {
      runs_.Add({range, vcpu, vcpu_index, number});
    }
  }
  // Forgets runs that end at or before `t`. O(log runs), and O(1) for each.
  void DropBefore(Tsc t) {
    runs_.DropWhile([t](const PcpuRun& run) { return run.range.end <= t; });
  }
  // Forgets all but the last `count` runs, where there are four times as many. O(1) amortised for
  // each that was added.
  void KeepLast(size_t count) { runs_.KeepLast(count); }
  // Returns the run that holds the instant, or null. O(log runs).
  [[nodiscard]] const PcpuRun* At(Tsc t) const {
    const auto run = FirstEndingAfter(t);
    return run != runs_.end() && run->range.Contains(t) ? &*run : nullptr;
  }
  // Calls visit(run, part) for each run of which a part is in `range`. O(log runs + visited runs).
  template <typename Visitor>
  void ForEach(TscRange range, Visitor visit) const {
    for (auto run = FirstEndingAfter(range.begin);
         run != runs_.end() && run->range.begin < range.end; ++run) {
      const TscRange part = run->range.Intersect(range);
      if (!part.Empty()) visit(*run, part);
    }
  }

 private:
  [[nodiscard]] HistoryQueue<PcpuRun>::Iterator FirstEndingAfter(Tsc t) const {
    return std::partition_point(runs_.begin(), runs_.end(),
                                [t](const PcpuRun& run) { return run.range.end <= t; });
  }

  HistoryQueue<PcpuRun> runs_;
};

}  // namespace xenoscope::correlate
