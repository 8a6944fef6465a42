// Passes over a trace for series. The first pass finds the lines and their totals, on several
// threads. It keeps the sums of all intervals, if these are few. If they are many, or the trace
// ends elsewhere than its last windows say, a second pass hands out a row at the end of each
// interval, and keeps one interval in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "analysis/series/series.h"
#include "analysis/trace_pass.h"

namespace xenoscope::analysis {

// Name of the line that sums up the lines that are not kept apart.
inline constexpr std::string_view kOtherName = "(other)";

struct SeriesLine {
  std::string name;
  uint64_t total = 0;  // sum over the trace, in cycles or as a count
};

struct TotalledSeries {
  const SeriesInfo* info = nullptr;
  // Lines, the largest total first, of equal ones the smaller key; "(other)" is last.
  std::vector<SeriesLine> lines;
  absl::flat_hash_map<uint64_t, size_t> line_of;  // index in `lines`, by key
  // By line: its sums in the intervals up to the last that has any; empty if they are not kept.
  std::vector<std::vector<uint64_t>> kept;
};

struct SeriesTotals {
  TraceMetadata metadata;
  Cycles length = 0;  // of an interval
  DomainFilter filter;
  std::vector<TotalledSeries> series;
  bool are_kept = false;  // the sums of all intervals
};

struct SeriesRequest {
  std::vector<const SeriesInfo*> series;
  // Returns the length of an interval, in cycles (at least 1), of a trace with this clock and
  // range.
  std::function<absl::StatusOr<Cycles>(const TraceMetadata&)> length;
  DomainFilter filter{};
  size_t max_lines = 0;  // the largest lines of a series that are kept apart; 0: all
  unsigned threads = 1;  // that are used where all series are local
};

// Finds the lines of each series, at most IntervalSums::kMaxLines; "(other)" sums up the rest. The
// result is the same for each number of threads. Errors: those of AnalyseTrace and of the length.
absl::StatusOr<SeriesTotals> ComputeSeriesTotals(const trace::TraceFile& file,
                                                 const TraceHints& hints,
                                                 const SeriesRequest& request);

struct IntervalRow {
  TscRange range;
  std::vector<std::vector<uint64_t>> values;  // sums, first by series of the totals, then by line
};

using OnRow = std::function<absl::Status(const IntervalRow&)>;

// Limit of intervals times (lines + vCPUs), all of which each interval looks at. More would take
// minutes.
inline constexpr uint64_t kMaxCells = 4'000'000'000;

// Calls `on_row` for the rows. Errors: more cells than kMaxCells; those of PassOverIntervals and of
// `on_row`; Internal when the rows of a line do not add up to its total.
absl::Status ForEachSeriesRow(const trace::TraceFile& file, const SeriesTotals& totals,
                              const OnRow& on_row);

}  // namespace xenoscope::analysis
