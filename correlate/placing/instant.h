// Places samples that say when they were taken.
#pragma once

#include <optional>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "correlate/timeline_history.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// Returns what the pCPU did at the instant, if that is known. O(log intervals).
[[nodiscard]] std::optional<TimelineInterval> IntervalOn(PcpuId pcpu, Tsc at,
                                                         const RecentTimeline& timeline);

// Places the sample in the interval that holds the middle of its bracket: on its vCPU, or on its
// pCPU where the sample only knows that it was in Xen. O(log intervals).
void PlaceInstant(const recording::Sample& sample, RecentTimeline& timeline,
                  PlacingOutcome& outcome);

}  // namespace xenoscope::correlate
