// Divides a trace over threads by time. A thread learns the state at the start of its partition by
// following a stretch before it, its warm-up (RecordPipeline::StartWarmUp), which takes less time
// than counting does. The first partition has no warm-up and is longer by that time, so that all
// threads end together. When another thread has met a vCPU that the warm-up did not show, the
// thread follows a longer stretch, and then all that comes before. Whether the warm-up sufficed is
// checked when the partition before has ended (analysis/analyse_trace).
#pragma once

#include <optional>
#include <vector>

#include "base/tsc.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

struct PartitionBegin {
  Tsc at;
  // The starts of the warm-up and of the longer one after it; nullopt: the start of the trace.
  std::optional<Tsc> warm_up;
  std::optional<Tsc> longer_warm_up{};
};

// Returns where all partitions but the first begin, ascending. There are at most `threads` - 1, and
// fewer where the trace is short or its times are not usable. O(windows + threads log windows).
std::vector<PartitionBegin> PartitionTrace(const trace::TraceFile& file, unsigned threads);

// As PartitionTrace, for traces of any length.
std::vector<PartitionBegin> PartitionTraceOfAnyLength(const trace::TraceFile& file,
                                                      unsigned threads);

}  // namespace xenoscope::analysis
