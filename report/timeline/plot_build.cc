#include "report/timeline/plot_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using analysis::Quantity;
using analysis::ValueKind;

constexpr size_t kTicks = 9;

}  // namespace

SeriesPlotBuilder::SeriesPlotBuilder(const analysis::SeriesTotals& totals, size_t series,
                                     size_t max_bins, std::string subtitle)
    : totals_(totals), series_(series) {
  const analysis::TraceMetadata& metadata = totals.metadata;
  const analysis::TotalledSeries& surveyed = totals.series[series];
  const uint64_t intervals = metadata.range.Length() / totals.length + 1;
  together_ = (intervals + max_bins - 1) / max_bins;
  const bool time = surveyed.info->quantity == Quantity::kTime;
  plot_.title = surveyed.info->title;
  plot_.subtitle = std::move(subtitle);
  plot_.y_title = time ? "share of time" : "per second";
  plot_.y_kind = time ? AxisKind::kShare : AxisKind::kNumber;
  plot_.seconds = metadata.clock.Seconds(metadata.range.Length());
  plot_.bin_seconds = metadata.clock.Seconds(totals.length * together_);
  plot_.stacked = surveyed.info->parts;
  const auto cycles = static_cast<double>(std::max<Cycles>(metadata.range.Length(), 1));
  for (const analysis::SeriesLine& line : surveyed.lines) {
    PlotLine& out = plot_.lines.emplace_back();
    out.name = line.name;
    out.rest = line.name == analysis::kOtherName;
    out.figure = time ? CellText(static_cast<double>(line.total) / cycles, ColumnUnit::kShare)
                      : CellText(line.total, ColumnUnit::kCount);
  }
  sums_.resize(plot_.lines.size());
}

void SeriesPlotBuilder::Row(const analysis::IntervalRow& row) {
  if (rows_++ % together_ == 0) {
    bin_ = row.range;
    std::fill(sums_.begin(), sums_.end(), 0);
    for (PlotLine& line : plot_.lines) line.values.push_back(0);
  }
  bin_.end = row.range.end;
  const auto length = static_cast<double>(bin_.Length());
  const bool time = totals_.series[series_].info->quantity == Quantity::kTime;
  const double per = time ? length : length / static_cast<double>(totals_.metadata.clock.hz);
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] += row.values[series_][i];
    plot_.lines[i].values.back() = static_cast<double>(sums_[i]) / per;
  }
}

void PointExtent::OnPoint(uint64_t line, Tsc /*x*/, uint64_t y) {
  ++points_;
  low_ = std::min(low_, static_cast<int64_t>(y));
  high_ = std::max(high_, static_cast<int64_t>(y));
  if (kind_ == ValueKind::kAddress) broken_axis_.Add(y);
  const auto found = lines_.find(line);
  if (found != lines_.end()) {
    ++found->second;
  } else if (lines_.size() < kMaxLines) {
    lines_.emplace(line, 1);
  }
}

ScatterPlotBuilder::ScatterPlotBuilder(PointExtent& totals, const analysis::ScatterInfo& info,
                                       const analysis::Scatter& scatter,
                                       const analysis::TraceMetadata& metadata, size_t columns,
                                       size_t rows, std::string subtitle)
    : totals_(totals), metadata_(metadata) {
  plot_.title = info.title;
  plot_.subtitle =
      fmt::format("{} points; {}", CellText(totals.points_, ColumnUnit::kCount), subtitle);
  plot_.y_title = info.y_title;
  plot_.seconds = metadata.clock.Seconds(metadata.range.Length());
  plot_.columns = columns;
  plot_.rows = rows;
  plot_.exact = totals.points_ <= kFew;
  totals_.broken_axis_.Finish();
  MakeAxis(info);

  std::vector<std::pair<uint64_t, uint64_t>> lines(totals.lines_.begin(), totals.lines_.end());
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  uint64_t named = 0;
  for (size_t i = 0; i < lines.size() && i < kPlotLines; ++i) {
    line_of_.emplace(lines[i].first, i);
    plot_.lines.push_back({.name = scatter.LineName(lines[i].first),
                           .figure = CellText(lines[i].second, ColumnUnit::kCount),
                           .values = {},
                           .cells = {}});
    named += lines[i].second;
  }
  if (named < totals.points_) {
    plot_.lines.push_back({.name = std::string(analysis::kOtherName),
                           .figure = CellText(totals.points_ - named, ColumnUnit::kCount),
                           .values = {},
                           .cells = {},
                           .rest = true});
  }
  rest_ = plot_.lines.empty() ? 0 : plot_.lines.size() - 1;
  if (plot_.exact) return;
  for (PlotLine& line : plot_.lines) line.cells.resize(columns * rows);
}

void ScatterPlotBuilder::MakeAxis(const analysis::ScatterInfo& info) {
  if (totals_.points_ == 0) return;
  const auto low = static_cast<double>(totals_.low_);
  const auto high = static_cast<double>(totals_.high_);
  AxisKind kind = AxisKind::kNumber;
  switch (info.kind) {
    case ValueKind::kAddress:
      plot_.y_ticks = totals_.broken_axis_.Ticks(kTicks);
      return;
    case ValueKind::kCycles:
      // Lengths of time differ by powers of ten.
      log_ = true;
      low_ = std::max(metadata_.clock.Seconds(1) * low, 1e-9) * 0.8;
      high_ = std::max(metadata_.clock.Seconds(1) * high * 1.25, low_ * 10);
      plot_.y_ticks = LogTicks(AxisKind::kSeconds, low_, high_, kTicks);
      break;
    case ValueKind::kState:
      low_ = -1.5;
      high_ = 3.5;
      kind = AxisKind::kState;
      banded_ = true;
      break;
    case ValueKind::kNumber: {
      const bool few = high - low < 64;  // numbers of pCPUs: each has its own row
      kind = few ? AxisKind::kInteger : AxisKind::kNumber;
      banded_ = few;
      low_ = low - (few ? 0.5 : 0);
      high_ = high + (few ? 0.5 : 0);
      break;
    }
  }
  if (!log_) plot_.y_ticks = LinearTicks(kind, low_, high_, kTicks);
  for (Tick& tick : plot_.y_ticks) {
    tick.at = log_ ? std::log(tick.at / low_) / std::log(high_ / low_)
                   : (tick.at - low_) / (high_ - low_);
  }
}

double ScatterPlotBuilder::Place(uint64_t y, size_t line) const {
  if (totals_.kind_ == ValueKind::kAddress) return totals_.broken_axis_.Place(y);
  if (!log_) {
    constexpr double kBand = 0.8;  // the share of the distance from one value to the next
    const auto lines = static_cast<double>(plot_.lines.size());
    const double beside = banded_ ? ((static_cast<double>(line) + 0.5) / lines - 0.5) * kBand : 0;
    return (static_cast<double>(static_cast<int64_t>(y)) + beside - low_) / (high_ - low_);
  }
  const double seconds = std::max(metadata_.clock.Seconds(y), low_);
  return std::log(seconds / low_) / std::log(high_ / low_);
}

void ScatterPlotBuilder::OnPoint(uint64_t line, Tsc x, uint64_t y) {
  const auto found = line_of_.find(line);
  const size_t index = found == line_of_.end() ? rest_ : found->second;
  const double seconds = metadata_.clock.Seconds(x - metadata_.range.begin);
  const double place = std::clamp(Place(y, index), 0.0, 1.0);
  if (plot_.exact) {
    plot_.points.push_back({index, seconds, place});
    return;
  }
  const double across = plot_.seconds > 0 ? seconds / plot_.seconds : 0;
  const auto column =
      std::min(static_cast<size_t>(across * static_cast<double>(plot_.columns)), plot_.columns - 1);
  const auto row =
      std::min(static_cast<size_t>(place * static_cast<double>(plot_.rows)), plot_.rows - 1);
  uint32_t& cell = plot_.lines[index].cells[row * plot_.columns + column];
  if (cell != UINT32_MAX) ++cell;
}

}  // namespace xenoscope::report
