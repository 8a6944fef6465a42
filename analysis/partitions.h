// A trace divided over threads by time. What a thread must know of what comes before its partition
// it learns by following a part of that, its warm-up (RecordPipeline::StartWarmUp), which takes a
// part of the time that counting takes; the first partition has none, and is longer by that, so
// that all threads end together. When another thread has met a vCPU that the warm-up did not tell
// of, a longer one follows, and then all that comes before; whether that told everything is seen
// when the partition before has ended (analysis/analyse_trace).
#pragma once

#include <optional>
#include <vector>

#include "base/tsc.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

struct PartitionBegin {
  Tsc at;
  // Where its warm-up begins, and that after it; nullopt: with the trace.
  std::optional<Tsc> warm_up;
  std::optional<Tsc> longer_warm_up{};
};

// Where all partitions but the first begin, ascending; at most `threads` - 1 of them, fewer where
// the trace is too short or its times do not tell. O(threads log windows).
std::vector<PartitionBegin> PartitionTrace(const trace::TraceFile& file, unsigned threads);

// As PartitionTrace, whatever the length of the trace.
std::vector<PartitionBegin> PartitionTraceOfAnyLength(const trace::TraceFile& file,
                                                      unsigned threads);

}  // namespace xenoscope::analysis
