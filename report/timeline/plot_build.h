// Builds a picture of bounded size from rows and points, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/scatter/scatter.h"
#include "analysis/series/series_pass.h"
#include "report/timeline/plot.h"
#include "report/timeline/plot_axis.h"

namespace xenoscope::report {

// A builder of the picture of one series. Times become shares of the interval, counts become rates.
// When there are more intervals than `max_bins`, several intervals make a bin.
class SeriesPlotBuilder {
 public:
  SeriesPlotBuilder(const analysis::SeriesTotals& totals, size_t series, size_t max_bins,
                    std::string subtitle);
  void Row(const analysis::IntervalRow& row);
  const SeriesPlot& plot() const { return plot_; }

 private:
  const analysis::SeriesTotals& totals_;
  size_t series_;
  uint64_t together_;  // the number of intervals in a bin
  uint64_t rows_ = 0;
  TscRange bin_;                // the last bin, up to the last row
  std::vector<uint64_t> sums_;  // the sums of the last bin
  SeriesPlot plot_;
};

// The first pass over the points: it finds their number, their lines, and their least and greatest
// value.
class PointExtent : public analysis::PointSink {
 public:
  explicit PointExtent(analysis::ValueKind kind) : kind_(kind) {}
  void OnPoint(uint64_t line, Tsc x, uint64_t y) override;

 private:
  friend class ScatterPlotBuilder;
  // the lines that are counted one by one; points of more lines are the rest
  static constexpr size_t kMaxLines = 8192;

  analysis::ValueKind kind_;
  uint64_t points_ = 0;
  int64_t low_ = INT64_MAX;
  int64_t high_ = INT64_MIN;
  std::unordered_map<uint64_t, uint64_t> lines_;
  BrokenAxis broken_axis_;
};

// The second pass over the points: it builds the picture.
class ScatterPlotBuilder : public analysis::PointSink {
 public:
  ScatterPlotBuilder(PointExtent& totals, const analysis::ScatterInfo& info,
                     const analysis::Scatter& scatter, const analysis::TraceMetadata& metadata,
                     size_t columns, size_t rows, std::string subtitle);
  void OnPoint(uint64_t line, Tsc x, uint64_t y) override;
  const ScatterPlot& plot() const { return plot_; }

 private:
  // The bound of exact points: fewer points than this are drawn each at its place.
  static constexpr uint64_t kFew = 3000;

  void MakeAxis(const analysis::ScatterInfo& info);
  double Place(uint64_t y, size_t line) const;  // the place on the axis, in [0, 1]

  PointExtent& totals_;
  const analysis::TraceMetadata& metadata_;
  bool log_ = false;
  bool banded_ = false;  // values are few names, at which each line has its own stripe
  double low_ = 0;
  double high_ = 1;
  std::unordered_map<uint64_t, size_t> line_of_;
  size_t rest_ = 0;  // the index of the line for lines that are not in line_of_
  ScatterPlot plot_;
};

}  // namespace xenoscope::report
