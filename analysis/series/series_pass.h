// Series over a trace: a first pass finds the lines and their totals, a second one gives the rows
// as the intervals end, so that neither holds more than one interval.
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

// The line of those that are not kept apart.
inline constexpr std::string_view kOtherName = "(other)";

struct SeriesLine {
  std::string name;
  uint64_t total = 0;  // cycles or a count
};

struct TotalledSeries {
  const SeriesInfo* info = nullptr;
  std::vector<SeriesLine> lines;  // largest first; what was folded is "(other)", last
  absl::flat_hash_map<uint64_t, size_t> line_of;  // by key
};

struct SeriesTotals {
  TraceMetadata metadata;
  std::vector<TotalledSeries> series;
};

// `max_lines` of each series are kept apart, 0 keeps all (IntervalSums::kMaxLines); the others
// are summed up in "(other)".
absl::StatusOr<SeriesTotals> ComputeSeriesTotals(const trace::TraceFile& file,
                                                 const TraceHints& hints,
                                                 const std::vector<const SeriesInfo*>& series,
                                                 const DomainFilter& filter, size_t max_lines);

struct IntervalRow {
  TscRange range;
  std::vector<std::vector<uint64_t>> values;  // by series of the totals, by line
};

using OnRow = std::function<absl::Status(const IntervalRow&)>;

// Intervals times lines and vCPUs, which each interval looks at; beyond it takes minutes.
inline constexpr uint64_t kMaxCells = 4'000'000'000;

// The rows, in intervals of `length` cycles. Errors: more cells than kMaxCells; those of
// PassOverIntervals and of `on_row`; Internal when the rows of a line do not add up to its total.
absl::Status ForEachSeriesRow(const trace::TraceFile& file, const SeriesTotals& totals,
                              const DomainFilter& filter, Cycles length, const OnRow& on_row);

}  // namespace xenoscope::analysis
