// Places samples that say when they were taken.
#pragma once

#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// Places the sample in the interval that holds the middle of its bracket: on its vCPU, or on its
// pCPU where the sample only knows that it was in Xen. O(log intervals).
void PlaceInstant(const recording::Sample& sample, RecentTimeline& timeline,
                  PlacingOutcome& outcome);

}  // namespace xenoscope::correlate
