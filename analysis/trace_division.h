// Divides a trace over threads by time, into partitions of several steps each. A thread learns the
// state at the start of its partition by following a stretch before it, its warm-up
// (RecordPipeline::StartWarmUp), which takes less time than counting does. The first partition has
// no warm-up and is longer by that time, so that all threads end together; where they would not, a
// thread that is done takes steps of another one (analysis/partition_schedule). When another thread
// has met a vCPU that the warm-up did not show, the thread follows a longer stretch, and then all
// that comes before. Whether the warm-up sufficed is checked when the partition before has ended
// (analysis/count_trace).
#pragma once

#include <cstddef>
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

struct TraceDivision {
  // Where all steps but the first begin, ascending. A partition can begin at each.
  std::vector<PartitionBegin> begins;
  // The steps at which partitions begin, ascending: one for each thread, the first one 0.
  std::vector<size_t> starts = {0};
};

// Returns a division in which a partition begins at each of `begins`, on a thread of its own.
TraceDivision PartitionAtEach(std::vector<PartitionBegin> begins);

// Returns a division into a partition for each of so many threads, and fewer where the trace is
// short or its times are not usable. O(windows + steps log windows).
TraceDivision DivideTrace(const trace::TraceFile& file, unsigned threads);

// As DivideTrace, for traces of any length, with at most so many steps for each partition.
TraceDivision DivideTraceOfAnyLength(const trace::TraceFile& file, unsigned threads, size_t steps);

}  // namespace xenoscope::analysis
