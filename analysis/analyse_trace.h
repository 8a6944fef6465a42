// Runs analyses over a trace: one pass over the ordered stream, every byte accounted for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/analysis.h"
#include "analysis/document.h"
#include "analysis/partitions.h"
#include "base/tsc.h"
#include "correlate/clocks.h"
#include "correlate/guest_clocks.h"
#include "correlate/pcpu_groups.h"
#include "correlate/timeline.h"
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

// The totals of a trace. records includes the records that other fields name; record_bytes +
// header_bytes + damaged_bytes is the size of the file (checked).
struct TraceTotals {
  uint64_t bytes = 0;
  uint64_t header_bytes = 0;  // bytes of window headers
  uint64_t record_bytes = 0;
  uint64_t damaged_bytes = 0;
  uint64_t records = 0;         // all records, those counted below included
  uint64_t unknown_events = 0;  // records of events that this version does not know
  uint64_t malformed = 0;       // records with a number of words, or of a vCPU, that no Xen has
  uint64_t first_malformed_offset = 0;
  uint64_t padding = 0;  // records that fill up the end of a ring
  uint64_t loss_marks = 0;
  uint64_t lost_records = 0;  // records lost, as the marks say
  uint64_t damages = 0;
  uint64_t pcpus = 0;
  Tsc first;
  Tsc last;
  // Records by event id, of the first kUnknownKept unknown ids.
  std::map<uint32_t, uint64_t> unknown_by_id;
  std::vector<trace::Damage> first_damages;  // the first kDamagesKept damages
  correlate::TimelineFaults faults;
  // Differences of clocks; searched for only where the timeline has faults.
  std::vector<correlate::ClockSkew> skews;
  // The TSCs of guests; searched for only if wanted (TraceHints).
  std::vector<correlate::DomainClock> guest_clocks;

  static constexpr size_t kDamagesKept = 16;
  static constexpr size_t kUnknownKept = 256;

  // Adds the figures of the part of the trace that follows.
  void Append(const TraceTotals& later);
};

// The result of a pass: the totals, what is known of the trace, and what the analyses describe.
struct AnalysisResult {
  TraceTotals trace;
  TraceMetadata metadata;
  Document document;
  // Partitions that a second thread had to repeat, because their warm-up was too short.
  uint32_t partitions_repeated = 0;
  // What the analyses have used. With hundreds of vCPUs it takes some percent of the time to free
  // it, which a process that ends need not do.
  std::shared_ptr<const void> kept;
};

// A function that makes the analyses of one thread.
using MakeAnalyses = std::function<std::vector<std::unique_ptr<Analysis>>()>;

// Passes over the trace once. Time is linear in the records, memory does not depend on them. With
// more than one thread the trace is divided by time (partitions.h); the result is the same. Errors:
// Internal when the bytes do not add up; those of CheckLimits.
absl::StatusOr<AnalysisResult> AnalyseTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const MakeAnalyses& make, unsigned threads);

// As AnalyseTrace, with partitions that begin at `begins` (ascending, none at the trace's start),
// one thread for each, and windows of so many bytes (correlate::PcpuGroups).
absl::StatusOr<AnalysisResult> AnalysePartitions(
    const trace::TraceFile& file, const TraceHints& hints, const MakeAnalyses& make,
    const std::vector<PartitionBegin>& begins,
    uint64_t window_bytes = correlate::kGroupWindowBytes);

}  // namespace xenoscope::analysis
