// Places samples that have a short bracket of their own.
#pragma once

#include "correlate/placing/candidate_finder.h"
#include "correlate/placing/outcome.h"
#include "correlate/placing/recent_timeline.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// Places the sample by the lengths of the intervals in its bracket. The sampled system's own
// interrupt took it, so that no NMI exit of the trace is the sample's, and its address is not
// stale. O(intervals).
void PlaceTimed(const recording::Sample& sample, RecentTimeline& timeline, CandidateFinder& finder,
                PlacingOutcome& outcome);

// Places the sample of the vCPU by the lengths of the intervals in the range `when` that agree with
// its mode. O(intervals).
void AcceptTimed(const recording::Sample& sample, const VcpuTrack& track, TscRange when,
                 CandidateFinder& finder, PlacingOutcome& outcome);

}  // namespace xenoscope::correlate
