// What one vCPU, or one pCPU, was doing, as far back as the longest bracket reaches: the part of
// the timeline in which a sample can have been taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/history_queue.h"

namespace xenoscope::correlate {

// A vCPU doing one thing on one pCPU during [begin, end); or kLost.
struct TimelineInterval {
  TscRange range;
  Context context;
  VcpuRef vcpu;
  PcpuId pcpu;
  uint64_t timeslice_id = 0;  // RunstateInterval::number
  Tsc timeslice_begin;        // the begin of that running interval
};

// Intervals that do not overlap, in the order of time.
class TimelineHistory {
 public:
  // `interval` begins where the last one ended, or later. O(1).
  void Add(const TimelineInterval& interval) { intervals_.Add(interval); }
  // Adds an interval that the caller fills. O(1).
  [[nodiscard]] TimelineInterval& Append() { return intervals_.Append(); }
  // Sets what the exit was about in the interval that begins at `begin`, if it is not forgotten.
  // O(log intervals).
  void SetSubreason(Tsc begin, ExitKind kind, uint64_t number);
  // Forgets intervals that end at or before `t`. O(log intervals), and O(1) for each.
  void DropBefore(Tsc t);
  // Forgets all but the last `count` intervals, where there are four times as many. O(1) amortised
  // for each that was added.
  void KeepLast(size_t count) { intervals_.KeepLast(count); }
  // Calls visit(interval, part) for each interval of which a part is in `range`.
  // O(log intervals + visited intervals).
  template <typename Visitor>
  void ForEach(TscRange range, Visitor visit) const;
  // Returns the interval that holds the instant, or null: one of those that were added after the
  // first `from`. O(log intervals).
  [[nodiscard]] const TimelineInterval* At(Tsc t, uint64_t from = 0) const;

  // Returns the end of the last interval; 0 if there is none. O(1).
  [[nodiscard]] Tsc end() const { return empty() ? Tsc{0} : intervals_.back().range.end; }
  [[nodiscard]] bool empty() const { return intervals_.empty(); }
  [[nodiscard]] size_t size() const { return intervals_.size(); }
  // Returns how many intervals were added. O(1).
  [[nodiscard]] uint64_t added() const { return intervals_.next_number(); }

 private:
  [[nodiscard]] HistoryQueue<TimelineInterval>::Iterator FirstEndingAfter(Tsc t,
                                                                          uint64_t from = 0) const;

  HistoryQueue<TimelineInterval> intervals_;
};

// Whether a sample of this mode can have been taken in this context: guest code runs between
// VMENTRY and VMEXIT, Xen between VMEXIT and VMENTRY, in transitions and in context switches; for
// what a PV vCPU does otherwise the trace says neither.
[[nodiscard]] constexpr bool Agrees(Mode mode, ContextKind context) {
  switch (context) {
    case ContextKind::kGuest:
      return mode != Mode::kXen;
    case ContextKind::kExit:
    case ContextKind::kResume:
    case ContextKind::kTransition:
    case ContextKind::kSwitch:
      return mode == Mode::kXen;
    case ContextKind::kUnsampledSwitch:
      return false;
    case ContextKind::kRunning:
    case ContextKind::kLost:
    case ContextKind::kUntraced:
      break;
  }
  return true;
}

template <typename Visitor>
void TimelineHistory::ForEach(TscRange range, Visitor visit) const {
  for (auto interval = FirstEndingAfter(range.begin);
       interval != intervals_.end() && interval->range.begin < range.end; ++interval) {
    const TscRange part = interval->range.Intersect(range);
    if (!part.Empty()) visit(*interval, part);
  }
}

}  // namespace xenoscope::correlate
