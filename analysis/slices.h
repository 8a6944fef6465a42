// A trace divided over threads by time. A thread that begins in the middle first follows the trace
// from its beginning for what changes the state only (Lane::StartFollowing), which takes a part of
// the time that counting takes; slices are the shorter, the later they begin, so that all threads
// end together.
#pragma once

#include <vector>

#include "base/tsc.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// The instants at which all slices but the first begin, ascending; at most `threads` - 1 of them,
// fewer where the trace is too short or its times do not tell. O(threads log windows).
std::vector<Tsc> SliceTimes(const trace::TraceFile& file, unsigned threads);

// As SliceTimes, whatever the length of the trace.
std::vector<Tsc> SliceTimesOfAnyLength(const trace::TraceFile& file, unsigned threads);

}  // namespace xenoscope::analysis
