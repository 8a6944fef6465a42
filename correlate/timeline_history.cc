#include "correlate/timeline_history.h"

#include <algorithm>

namespace xenoscope::correlate {

HistoryQueue<TimelineInterval>::Iterator TimelineHistory::FirstEndingAfter(Tsc t,
                                                                           uint64_t from) const {
  return std::partition_point(
      intervals_.From(from), intervals_.end(),
      [t](const TimelineInterval& interval) { return interval.range.end <= t; });
}

void TimelineHistory::SetSubreason(Tsc begin, ExitKind kind, uint64_t number) {
  const auto found = FirstEndingAfter(begin);
  if (found == intervals_.end() || found->range.begin != begin) return;
  Context& context = intervals_.Mutable(found).context;
  context.exit_kind = kind;
  context.number = number;
}

void TimelineHistory::DropBefore(Tsc t) {
  intervals_.DropWhile([t](const TimelineInterval& interval) { return interval.range.end <= t; });
}

const TimelineInterval* TimelineHistory::At(Tsc t, uint64_t from) const {
  const auto interval = FirstEndingAfter(t, from);
  return interval != intervals_.end() && interval->range.Contains(t) ? &*interval : nullptr;
}

}  // namespace xenoscope::correlate
