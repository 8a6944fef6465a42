#include "analysis/series/series_pass.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "analysis/analyse_trace.h"
#include "analysis/record_pipeline.h"
#include "analysis/trace_metadata.h"
#include "base/error.h"

namespace xenoscope::analysis {
namespace {

// Returns the names and totals of a series' lines, largest first, with the small ones folded.
void Describe(const Series& series, const TraceMetadata& metadata, size_t max_lines,
              TotalledSeries& out) {
  std::vector<const IntervalSums::Line*> order;
  const IntervalSums::Line* other = nullptr;
  for (const IntervalSums::Line& line : series.sums().lines()) {
    if (line.key == IntervalSums::kOtherKey) {
      other = &line;
    } else {
      order.push_back(&line);
    }
  }
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    return a->total != b->total ? a->total > b->total : a->key < b->key;
  });
  if (max_lines == 0) max_lines = order.size();
  const auto add = [&out](const IntervalSums::Line& line, size_t at) {
    out.lines[at].total += line.total;
    out.line_of.emplace(line.key, at);
    out.kept.resize(out.lines.size());
    std::vector<uint64_t>& kept = out.kept[at];
    kept.resize(std::max(kept.size(), line.kept.size()));
    std::ranges::transform(line.kept, kept, kept.begin(), std::plus<>());
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = std::min(i, max_lines);
    if (at == out.lines.size()) {
      out.lines.push_back(
          {at < max_lines ? series.LineName(order[i]->key, metadata) : std::string(kOtherName), 0});
    }
    add(*order[i], at);
  }
  if (other == nullptr) return;
  if (out.lines.size() <= max_lines) out.lines.push_back({std::string(kOtherName), 0});
  add(*other, out.lines.size() - 1);
}

std::vector<std::unique_ptr<Series>> Make(const std::vector<const SeriesInfo*>& infos,
                                          const DomainFilter& filter) {
  std::vector<std::unique_ptr<Series>> series;
  series.reserve(infos.size());
  for (const SeriesInfo* info : infos) series.push_back(info->make(filter));
  return series;
}

// The intervals whose sums are kept in the first pass; those of length 0 are not.
struct Kept {
  Tsc begin;
  Cycles length = 0;
};

// Makes the series as analyses of a thread.
MakeAnalyses MakerOf(const SeriesRequest& request, const Kept& kept) {
  return [&request, kept] {
    std::vector<std::unique_ptr<Analysis>> analyses;
    for (std::unique_ptr<Series>& each : Make(request.series, request.filter)) {
      if (kept.length > 0) each->sums().KeepIntervals(kept.begin, kept.length);
      analyses.push_back(std::move(each));
    }
    return analyses;
  };
}

// Returns the intervals that the trace probably has.
Kept LikelyIntervals(const trace::TraceFile& file, const TraceHints& hints,
                     const SeriesRequest& request) {
  const std::optional<TraceMetadata> metadata = LikelyTraceMetadata(file, hints);
  if (!metadata) return {};
  return {metadata->range.begin, request.length(*metadata).value_or(0)};
}

// Gives rows on, and adds them up.
class RowSums {
 public:
  RowSums(const SeriesTotals& totals, const OnRow& on_row) : totals_(totals), on_row_(on_row) {
    for (const TotalledSeries& each : totals.series) sums_.emplace_back(each.lines.size(), 0);
  }

  absl::Status Give(const IntervalRow& row) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      std::ranges::transform(sums_[i], row.values[i], sums_[i].begin(), std::plus<>());
    }
    return on_row_(row);
  }
  // Internal: the rows do not add up to the totals.
  [[nodiscard]] absl::Status Check(const std::string& name) const {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const TotalledSeries& series = totals_.series[i];
      for (size_t line = 0; line < series.lines.size(); ++line) {
        if (sums_[i][line] == series.lines[line].total) continue;
        return InternalError("{}: the intervals of {}, {}, add up to {}, and not to {}", name,
                             series.info->name, series.lines[line].name, sums_[i][line],
                             series.lines[line].total);
      }
    }
    return absl::OkStatus();
  }

 private:
  const SeriesTotals& totals_;
  const OnRow& on_row_;
  std::vector<std::vector<uint64_t>> sums_;  // by series and line
};

// Gives the rows that the first pass has kept.
absl::Status GiveKeptRows(const SeriesTotals& totals, RowSums& rows) {
  const Tsc end = totals.metadata.range.end + 1;
  IntervalRow row{{totals.metadata.range.begin, {}}, {}};
  for (size_t number = 0; row.range.begin < end; ++number, row.range.begin = row.range.end) {
    row.range.end = row.range.begin + std::min(totals.length, end - row.range.begin);
    row.values.clear();
    for (const TotalledSeries& series : totals.series) {
      std::vector<uint64_t>& values = row.values.emplace_back();
      for (const std::vector<uint64_t>& line : series.kept) {
        values.push_back(number < line.size() ? line[number] : 0);
      }
    }
    XENOSCOPE_RETURN_IF_ERROR(rows.Give(row));
  }
  return absl::OkStatus();
}

// Returns the sums of the current interval in the order of the totals' lines.
std::vector<uint64_t> Values(const IntervalSums& sums, const TotalledSeries& surveyed) {
  std::vector<uint64_t> values(surveyed.lines.size(), 0);
  for (const IntervalSums::Line& line : sums.lines()) {
    const auto found = surveyed.line_of.find(line.key);
    if (found != surveyed.line_of.end()) values[found->second] += line.in_interval;
  }
  return values;
}

// Gives the rows of a second pass.
absl::Status PassForRows(const trace::TraceFile& file, const SeriesTotals& totals, RowSums& rows) {
  std::vector<const SeriesInfo*> infos;
  for (const TotalledSeries& each : totals.series) infos.push_back(each.info);
  const std::vector<std::unique_ptr<Series>> series = Make(infos, totals.filter);
  for (size_t i = 0; i < series.size(); ++i) {
    IntervalSums& of_series = series[i]->sums();
    of_series.Begin(totals.metadata.range.begin);
    // Keys may appear in another order than in the first pass: where there are too many, the same
    // ones must have lines.
    for (const auto& [key, line] : totals.series[i].line_of) of_series.Keep(key);
  }
  return PassOverIntervals(file, SubscribersOf(series), totals.length,
                           [&](TscRange interval, const correlate::Timeline& timeline) {
                             IntervalRow row{interval, {}};
                             for (size_t i = 0; i < series.size(); ++i) {
                               series[i]->OnIntervalEnd(timeline, interval.end);
                               row.values.push_back(Values(series[i]->sums(), totals.series[i]));
                               series[i]->sums().Begin(interval.end);
                             }
                             return rows.Give(row);
                           });
}

}  // namespace

absl::StatusOr<SeriesTotals> ComputeSeriesTotals(const trace::TraceFile& file,
                                                 const TraceHints& hints,
                                                 const SeriesRequest& request) {
  const bool divided = std::ranges::all_of(request.series, &SeriesInfo::local);
  const Kept likely = LikelyIntervals(file, hints, request);
  XENOSCOPE_ASSIGN_OR_RETURN(
      AnalysisResult result,
      AnalyseTrace(file, hints, MakerOf(request, likely), divided ? request.threads : 1));
  SeriesTotals totals{.metadata = std::move(result.metadata),
                      .length = 0,
                      .filter = request.filter,
                      .series = {},
                      .are_kept = true};
  XENOSCOPE_ASSIGN_OR_RETURN(totals.length, request.length(totals.metadata));
  for (size_t i = 0; i < request.series.size(); ++i) {
    totals.series.push_back({request.series[i], {}, {}, {}});
    const auto& counted = static_cast<const Series&>(*(*result.analyses)[i]);
    Describe(counted, totals.metadata, request.max_lines, totals.series.back());
    totals.are_kept &= counted.sums().keeps_intervals();
  }
  const TscRange& range = totals.metadata.range;
  totals.are_kept &= likely.length == totals.length && likely.begin == range.begin &&
                     range.Length() / totals.length < IntervalSums::kMaxKept;
  return totals;
}

absl::Status ForEachSeriesRow(const trace::TraceFile& file, const SeriesTotals& totals,
                              const OnRow& on_row) {
  uint64_t width = 0;
  for (const TotalledSeries& each : totals.series) {
    width += each.line_of.size() + totals.metadata.vcpus;
  }
  const uint64_t intervals = totals.metadata.range.Length() / totals.length + 1;
  if (width > 0 && intervals > kMaxCells / width) {
    return InvalidError(
        "{}: {} intervals of {} lines and vCPUs are too many; choose a longer interval",
        file.name(), intervals, width);
  }
  RowSums sums(totals, on_row);
  XENOSCOPE_RETURN_IF_ERROR(totals.are_kept ? GiveKeptRows(totals, sums)
                                            : PassForRows(file, totals, sums));
  return sums.Check(file.name());
}

}  // namespace xenoscope::analysis
