// Runs analyses over a trace: one pass over the ordered stream, every byte accounted for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/analysis.h"
#include "analysis/count_trace.h"
#include "analysis/document.h"
#include "analysis/trace_division.h"
#include "analysis/trace_totals.h"
#include "base/tsc.h"
#include "correlate/pcpu_groups.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// What the user or the recording knows of the trace beyond its bytes; the rest is inferred.
struct TraceHints {
  std::optional<Clock> clock;
  trace::Dialect dialect;        // what is known of its version and vendor; the rest is inferred
  Resolver* resolver = nullptr;  // the names of guests' addresses; may be null
  // Whether AnalyseTrace searches for the TSCs of guests, which takes another pass where guests
  // wrote events.
  bool guest_clocks = false;
};

// The result of a pass: the totals, what is known of the trace, and what the analyses describe.
struct AnalysisResult {
  TraceTotals trace;
  TraceMetadata metadata;
  Document document;
  // The analyses, which have all of the trace; `kept` owns them.
  const std::vector<std::unique_ptr<Analysis>>* analyses = nullptr;
  // Partitions that a second thread had to repeat, because their warm-up was too short.
  uint32_t partitions_repeated = 0;
  // What the analyses have used. With hundreds of vCPUs it takes some percent of the time to free
  // it, which a process that ends need not do.
  std::shared_ptr<const void> kept;
};

// Passes over the trace once. Time is linear in the records, memory does not depend on them. With
// more than one thread the trace is divided by time (trace_division.h); the result is the same.
// Errors: Internal when the bytes do not add up; those of CheckLimits.
absl::StatusOr<AnalysisResult> AnalyseTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const MakeAnalyses& make, unsigned threads);

// As AnalyseTrace, with a division, and windows of so many bytes (correlate::PcpuGroups).
absl::StatusOr<AnalysisResult> AnalyseDivision(
    const trace::TraceFile& file, const TraceHints& hints, const MakeAnalyses& make,
    const TraceDivision& division, uint64_t window_bytes = correlate::kGroupWindowBytes);

}  // namespace xenoscope::analysis
