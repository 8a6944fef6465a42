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
#include "correlate/timeline.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// What the user or the recording knows of the trace beyond its bytes; the rest is inferred.
struct TraceHints {
  std::optional<Clock> clock;
  trace::Dialect dialect;        // what is known of it
  Resolver* resolver = nullptr;  // names guests' addresses; may be null
};

// The trace as a whole. records + the named others are all the records there are; record_bytes +
// header_bytes + damaged_bytes are all the bytes of the file (checked).
struct TraceTotals {
  uint64_t bytes = 0;
  uint64_t header_bytes = 0;  // window headers
  uint64_t record_bytes = 0;
  uint64_t damaged_bytes = 0;
  uint64_t records = 0;         // all of them, the ones below included
  uint64_t unknown_events = 0;  // of events that this version does not know
  uint64_t malformed = 0;       // with a number of words, or of a vCPU, that no Xen has
  uint64_t first_malformed_offset = 0;
  uint64_t padding = 0;  // at the ends of the rings
  uint64_t loss_marks = 0;
  uint64_t lost_records = 0;  // as the marks say
  uint64_t damages = 0;
  uint64_t pcpus = 0;
  Tsc first;
  Tsc last;
  std::map<uint32_t, uint64_t> unknown_by_id;  // the first kUnknownKept of them
  std::vector<trace::Damage> first_damages;    // at most kDamagesKept
  correlate::TimelineFaults faults;
  std::vector<correlate::ClockSkew> skews;  // looked for where there are faults

  static constexpr size_t kDamagesKept = 16;
  static constexpr size_t kUnknownKept = 256;

  // Adds the figures of the part of the trace that follows.
  void Append(const TraceTotals& later);
};

struct AnalysisResult {
  TraceTotals trace;
  TraceMetadata metadata;
  Document document;
  // Partitions of the trace whose warm-up was too short, so that another thread took them too.
  uint32_t partitions_repeated = 0;
};

// Makes the analyses of one thread.
using MakeAnalyses = std::function<std::vector<std::unique_ptr<Analysis>>()>;

// One pass; time linear in the records, memory independent of them. With more than one thread the
// trace is divided by time (partitions.h); the result is the same. Errors: Internal when the bytes
// do not add up; those of CheckLimits.
absl::StatusOr<AnalysisResult> AnalyseTrace(const trace::TraceFile& file, const TraceHints& hints,
                                            const MakeAnalyses& make, unsigned threads);

// As AnalyseTrace, with partitions that begin there, ascending and none at 0; one thread each.
absl::StatusOr<AnalysisResult> AnalysePartitions(const trace::TraceFile& file,
                                                 const TraceHints& hints, const MakeAnalyses& make,
                                                 const std::vector<PartitionBegin>& begins);

}  // namespace xenoscope::analysis
