// When records of a trace were lost, on whichever pCPU: only then can a vCPU of which the trace
// tells nothing have run (docs/method.md, section 3.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/history_queue.h"

namespace xenoscope::correlate {

class Losses {
 public:
  // Records of the pCPU are lost from `at` on, until they are no more. In the order of time.
  void Begin(PcpuId pcpu, Tsc at);
  void End(PcpuId pcpu, Tsc at);
  // The pCPU's trace has ended: what it does from there on is not known either.
  void EndOfPcpu(PcpuId pcpu, Tsc at);

  // How long something was lost before `now`, which is not before anything that was told.
  Cycles LostTimeUntil(Tsc now) const { return total_ + (lost_ > 0 ? now - since_ : 0); }
  // Calls visit(part) for each part of `range` in which records were lost. `now` as above.
  // O(log losses + those visited).
  template <typename Visitor>
  void ForEach(TscRange range, Tsc now, Visitor visit) const;
  // From when on a pCPU's trace has ended; the end of time where none has.
  Tsc ended() const { return ended_; }
  // Forgets those that end at or before `t`, but for LostTimeUntil.
  void DropBefore(Tsc t);

 private:
  static constexpr Tsc kNever{~uint64_t{0}};

  HistoryQueue<TscRange> ranges_;  // that do not overlap, in the order of time
  std::vector<bool> losing_;       // by pCPU
  uint32_t lost_ = 0;              // of these
  Tsc since_;                      // when the first of them began
  Tsc ended_ = kNever;
  Cycles total_ = 0;  // of the ranges, the forgotten ones too
};

template <typename Visitor>
void Losses::ForEach(TscRange range, Tsc now, Visitor visit) const {
  const auto show = [&](TscRange lost) {
    const TscRange part = lost.Intersect(range);
    if (!part.Empty()) visit(part);
  };
  auto lost = std::partition_point(ranges_.begin(), ranges_.end(),
                                   [&](TscRange each) { return each.end <= range.begin; });
  for (; lost != ranges_.end() && lost->begin < range.end; ++lost) show(*lost);
  if (lost_ > 0) show({since_, now});
}

}  // namespace xenoscope::correlate
