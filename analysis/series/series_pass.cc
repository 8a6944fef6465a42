#include "analysis/series/series_pass.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/analyse_trace.h"
#include "analysis/record_pipeline.h"
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
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = std::min(i, max_lines);
    if (at == out.lines.size()) {
      out.lines.push_back(
          {at < max_lines ? series.LineName(order[i]->key, metadata) : std::string(kOtherName), 0});
    }
    out.lines[at].total += order[i]->total;
    out.line_of.emplace(order[i]->key, at);
  }
  if (other == nullptr) return;
  if (out.lines.size() <= max_lines) out.lines.push_back({std::string(kOtherName), 0});
  out.lines.back().total += other->total;
  out.line_of.emplace(other->key, out.lines.size() - 1);
}

std::vector<std::unique_ptr<Series>> Make(const std::vector<const SeriesInfo*>& infos,
                                          const DomainFilter& filter) {
  std::vector<std::unique_ptr<Series>> series;
  series.reserve(infos.size());
  for (const SeriesInfo* info : infos) series.push_back(info->make(filter));
  return series;
}

// Makes the series as analyses of a thread.
MakeAnalyses MakerOf(const std::vector<const SeriesInfo*>& infos, const DomainFilter& filter) {
  return [&] {
    std::vector<std::unique_ptr<Analysis>> analyses;
    for (std::unique_ptr<Series>& each : Make(infos, filter)) analyses.push_back(std::move(each));
    return analyses;
  };
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

absl::Status CheckTotals(const trace::TraceFile& file, const TotalledSeries& series,
                         const std::vector<uint64_t>& sums) {
  for (size_t i = 0; i < series.lines.size(); ++i) {
    if (sums[i] == series.lines[i].total) continue;
    return InternalError("{}: the intervals of {}, {}, add up to {}, and not to {}", file.name(),
                         series.info->name, series.lines[i].name, sums[i], series.lines[i].total);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SeriesTotals> ComputeSeriesTotals(const trace::TraceFile& file,
                                                 const TraceHints& hints,
                                                 const std::vector<const SeriesInfo*>& series,
                                                 const DomainFilter& filter, size_t max_lines,
                                                 unsigned threads) {
  if (!std::ranges::all_of(series, &SeriesInfo::local)) threads = 1;
  XENOSCOPE_ASSIGN_OR_RETURN(AnalysisResult result,
                             AnalyseTrace(file, hints, MakerOf(series, filter), threads));
  SeriesTotals totals{std::move(result.metadata), {}};
  for (size_t i = 0; i < series.size(); ++i) {
    totals.series.push_back({series[i], {}, {}});
    const auto& counted = static_cast<const Series&>(*(*result.analyses)[i]);
    Describe(counted, totals.metadata, max_lines, totals.series.back());
  }
  return totals;
}

absl::Status ForEachSeriesRow(const trace::TraceFile& file, const SeriesTotals& totals,
                              const DomainFilter& filter, Cycles length, const OnRow& on_row) {
  std::vector<const SeriesInfo*> infos;
  std::vector<std::vector<uint64_t>> sums;
  uint64_t width = 0;
  for (const TotalledSeries& each : totals.series) {
    infos.push_back(each.info);
    sums.emplace_back(each.lines.size(), 0);
    width += each.line_of.size() + totals.metadata.vcpus;
  }
  const uint64_t intervals = totals.metadata.range.Length() / length + 1;
  if (width > 0 && intervals > kMaxCells / width) {
    return InvalidError(
        "{}: {} intervals of {} lines and vCPUs are too many; choose a longer interval",
        file.name(), intervals, width);
  }
  const std::vector<std::unique_ptr<Series>> series = Make(infos, filter);
  for (size_t i = 0; i < series.size(); ++i) {
    IntervalSums& of_series = series[i]->sums();
    of_series.Begin(totals.metadata.range.begin);
    // Keys may appear in another order than in the first pass: where there are too many, the same
    // ones must have lines.
    for (const auto& [key, line] : totals.series[i].line_of) of_series.Keep(key);
  }

  const auto on_interval = [&](TscRange interval, const correlate::Timeline& timeline) {
    IntervalRow row{interval, {}};
    for (size_t i = 0; i < series.size(); ++i) {
      series[i]->OnIntervalEnd(timeline, interval.end);
      row.values.push_back(Values(series[i]->sums(), totals.series[i]));
      std::transform(sums[i].begin(), sums[i].end(), row.values[i].begin(), sums[i].begin(),
                     std::plus<>());
      series[i]->sums().Begin(interval.end);
    }
    return on_row(row);
  };
  XENOSCOPE_RETURN_IF_ERROR(PassOverIntervals(file, SubscribersOf(series), length, on_interval));
  for (size_t i = 0; i < totals.series.size(); ++i) {
    XENOSCOPE_RETURN_IF_ERROR(CheckTotals(file, totals.series[i], sums[i]));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::analysis
