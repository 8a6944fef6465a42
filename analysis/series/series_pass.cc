#include "analysis/series/series_pass.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"

namespace xenoscope::analysis {
namespace {

// Returns the names and totals of a series' lines, largest first, with the small ones folded.
void Describe(const Series& series, const std::vector<IntervalSums::Line>& sums,
              const TraceMetadata& metadata, size_t max_lines, TotalledSeries& out) {
  std::vector<const IntervalSums::Line*> order;
  const IntervalSums::Line* other = nullptr;
  for (const IntervalSums::Line& line : sums) {
    if (line.key == IntervalSums::kOtherKey) {
      other = &line;
    } else {
      order.push_back(&line);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->total > b->total; });
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

struct Made {
  std::vector<std::unique_ptr<Subscriber>> analyses;  // the series, in the form for PassOverTrace
  std::vector<Series*> series;
};

Made Make(const std::vector<const SeriesInfo*>& infos, const DomainFilter& filter) {
  Made made;
  for (const SeriesInfo* info : infos) {
    std::unique_ptr<Series> series = info->make(filter);
    made.series.push_back(series.get());
    made.analyses.push_back(std::move(series));
  }
  return made;
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
                                                 const DomainFilter& filter, size_t max_lines) {
  const Made made = Make(series, filter);
  SeriesTotals totals;
  XENOSCOPE_ASSIGN_OR_RETURN(totals.metadata, PassOverTrace(file, hints, made.analyses));
  for (size_t i = 0; i < series.size(); ++i) {
    totals.series.push_back({series[i], {}, {}});
    Describe(*made.series[i], made.series[i]->sums().lines(), totals.metadata, max_lines,
             totals.series.back());
  }
  return totals;
}

absl::Status ForEachSeriesRow(const trace::TraceFile& file, const SeriesTotals& totals,
                              const DomainFilter& filter, Cycles length, const OnRow& on_row) {
  std::vector<const SeriesInfo*> infos;
  std::vector<std::vector<uint64_t>> sums;
  uint64_t width = 0;
  for (const TotalledSeries& series : totals.series) {
    infos.push_back(series.info);
    sums.emplace_back(series.lines.size(), 0);
    width += series.line_of.size() + totals.metadata.vcpus;
  }
  const uint64_t intervals = totals.metadata.range.Length() / length + 1;
  if (width > 0 && intervals > kMaxCells / width) {
    return InvalidError(
        "{}: {} intervals of {} lines and vCPUs are too many; choose a longer interval",
        file.name(), intervals, width);
  }
  const Made made = Make(infos, filter);
  for (size_t i = 0; i < made.series.size(); ++i) {
    IntervalSums& of_series = made.series[i]->sums();
    of_series.Begin(totals.metadata.range.begin);
    // Keys may appear in another order than in the first pass: where there are too many, the same
    // ones must have lines.
    for (const auto& [key, line] : totals.series[i].line_of) of_series.Keep(key);
  }

  const auto on_interval = [&](TscRange interval, const correlate::Timeline& timeline) {
    IntervalRow row{interval, {}};
    for (size_t i = 0; i < made.series.size(); ++i) {
      made.series[i]->OnIntervalEnd(timeline, interval.end);
      row.values.push_back(Values(made.series[i]->sums(), totals.series[i]));
      std::transform(sums[i].begin(), sums[i].end(), row.values[i].begin(), sums[i].begin(),
                     std::plus<>());
      made.series[i]->sums().Begin(interval.end);
    }
    return on_row(row);
  };
  XENOSCOPE_RETURN_IF_ERROR(PassOverIntervals(file, made.analyses, length, on_interval));
  for (size_t i = 0; i < totals.series.size(); ++i) {
    XENOSCOPE_RETURN_IF_ERROR(CheckTotals(file, totals.series[i], sums[i]));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::analysis
