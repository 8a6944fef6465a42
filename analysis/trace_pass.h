// One pass of the ordered stream through subscribers, optionally cut into intervals of equal
// length.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// The callback at the end of each interval [begin, end), in order: after all records before the
// end, and before any record at or after it. The first interval begins with the trace. An error
// ends the pass.
using OnInterval = std::function<absl::Status(TscRange interval, const correlate::Timeline&)>;

// Limit of intervals: more come from a length in the wrong unit, or from a damaged time.
inline constexpr uint64_t kMaxIntervals = 10'000'000;

// Passes over the trace once and finds its dialect, clock and range. Memory does not depend on the
// trace's length. Errors: those of CheckLimits.
absl::StatusOr<TraceMetadata> PassOverTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const std::vector<Subscriber*>& subscribers);

// As PassOverTrace, in intervals of `length` cycles (at least 1). The last interval ends just
// behind the last record. Errors: more than kMaxIntervals; those of `on_interval`.
absl::Status PassOverIntervals(const trace::TraceFile& file,
                               const std::vector<Subscriber*>& subscribers, Cycles length,
                               const OnInterval& on_interval);

}  // namespace xenoscope::analysis
