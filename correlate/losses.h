// The times in which records of a trace were lost, on any pCPU: only then can a vCPU of which the
// trace says nothing have run (docs/method.md, section 3.3).
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
  // Begin and end the time in which records of the pCPU are lost. Calls come in the order of time.
  void Begin(PcpuId pcpu, Tsc at);
  void End(PcpuId pcpu, Tsc at);
  // Ends the pCPU's trace: what it does from there on is not known either.
  void EndOfPcpu(PcpuId pcpu, Tsc at);

  // Returns the cycles before `now` in which records were lost. `now` is not before any earlier
  // call.
  [[nodiscard]] Cycles LostTimeUntil(Tsc now) const {
    return total_ + (lost_ > 0 ? now - since_ : 0);
  }
  // Calls visit(part) for each part of `range` in which records were lost. `now` is as above.
  // O(log losses + visited losses).
  template <typename Visitor>
  void ForEach(TscRange range, Tsc now, Visitor visit) const;
  // The time from which on a pCPU's trace has ended; the end of time if none has.
  [[nodiscard]] Tsc ended() const { return ended_; }
  // Forgets losses that end at or before `t`; LostTimeUntil still counts them.
  void DropBefore(Tsc t);

 private:
  static constexpr Tsc kNever{~uint64_t{0}};

  HistoryQueue<TscRange> ranges_;  // they do not overlap, and are in the order of time
  std::vector<bool> losing_;       // by pCPU: its records are being lost
  uint32_t lost_ = 0;              // the number of such pCPUs
  Tsc since_;                      // the time since when there are any
  Tsc ended_ = kNever;
  Cycles total_ = 0;  // the length of all ranges, also of those that are forgotten
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
