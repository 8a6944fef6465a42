#include "correlate/timeline_history.h"

#include <algorithm>

namespace xenoscope::correlate {

HistoryQueue<TimelineInterval>::Iterator TimelineHistory::FirstEndingAfter(Tsc t) const {
  return std::partition_point(
      intervals_.begin(), intervals_.end(),
      [t](const TimelineInterval& interval) { return interval.range.end <= t; });
}

void TimelineHistory::DropBefore(Tsc t) {
  intervals_.DropWhile([t](const TimelineInterval& interval) { return interval.range.end <= t; });
}

const TimelineInterval* TimelineHistory::At(Tsc t) const {
  const auto interval = FirstEndingAfter(t);
  return interval != intervals_.end() && interval->range.Contains(t) ? &*interval : nullptr;
}

}  // namespace xenoscope::correlate
