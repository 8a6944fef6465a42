// One pass of the ordered stream through subscribers, which may be cut into intervals of equal
// length.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// Called for each interval [begin, end) in turn when the stream has reached its end and before any
// record at or after it; the first begins with the trace. An error ends the pass.
using OnInterval = std::function<absl::Status(TscRange interval, const correlate::Timeline&)>;

// More intervals than this are refused: a length given in the wrong unit, or a damaged time.
inline constexpr uint64_t kMaxIntervals = 10'000'000;

// Finds the dialect, the clock and the range on the way. Memory independent of the trace's length.
// Errors: those of CheckLimits.
absl::StatusOr<TraceMetadata> PassOverTrace(
    const trace::TraceFile& file, const TraceHints& hints,
    const std::vector<std::unique_ptr<Subscriber>>& subscribers);

// As above, in intervals of `length` cycles (at least 1). The last one ends with the trace, whose
// last record is in it. Errors: more than kMaxIntervals; those of `on_interval`.
absl::Status PassOverIntervals(const trace::TraceFile& file,
                               const std::vector<std::unique_ptr<Subscriber>>& subscribers,
                               Cycles length, const OnInterval& on_interval);

}  // namespace xenoscope::analysis
