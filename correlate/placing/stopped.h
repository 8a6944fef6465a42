// Places samples of vCPUs that were stopped to be read.
#pragma once

#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"
#include "trace/names.h"

namespace xenoscope::correlate {

// Places the sample where its vCPU was when the trace saw it stop. A vCPU that is to stop gets an
// interrupt where it runs. One that was in the guest leaves it by that interrupt, and the sample is
// of the guest; else Xen was at work, and finished that first. O(log intervals).
void PlaceStopped(const recording::Sample& sample, trace::Vendor vendor, RecentTimeline& timeline,
                  PlacingOutcome& outcome);

}  // namespace xenoscope::correlate
