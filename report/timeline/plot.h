// A picture as data, which has no format yet: plot_svg.h draws it for a browser, plot_terminal.h in
// a terminal. Its size is bounded, whatever the length of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/timeline/plot_axis.h"

namespace xenoscope::report {

// A line of a picture: the values of a series, or the points of one colour.
struct PlotLine {
  std::string name;
  std::string figure;           // a figure beside the name: an average, a total
  std::vector<double> values;   // for a SeriesPlot: one value for each bin
  std::vector<uint32_t> cells;  // for a ScatterPlot: the number of points in each cell, row by row
  bool rest = false;            // the line sums up lines that are not shown
};

// Lines over time in bins of equal length. Bin i is the half-open range [i, i + 1) * bin_seconds;
// the last bin may end earlier, at `seconds`.
struct SeriesPlot {
  std::string title;
  std::string subtitle;
  std::string y_title;
  double seconds = 0;  // the length of the trace, in seconds
  double bin_seconds = 0;
  bool stacked = false;
  AxisKind y_kind = AxisKind::kNumber;
  std::vector<PlotLine> lines;
};

// A point with its exact place.
struct PlotPoint {
  size_t line = 0;
  double x = 0;  // seconds
  double y = 0;  // the place on the axis, in [0, 1)
};

// Points over time, counted in columns * rows cells, the bottom row first. While there are few
// points, the picture has the exact place of each.
struct ScatterPlot {
  std::string title;
  std::string subtitle;
  std::string y_title;
  double seconds = 0;
  size_t columns = 0;
  size_t rows = 0;
  std::vector<Tick> y_ticks;
  std::vector<PlotLine> lines;
  std::vector<PlotPoint> points;
  bool exact = true;  // `points` has all points
};

// Colours that people with any colour vision can distinguish on white: those of Okabe and Ito,
// "Color Universal Design" (2008), without black and yellow. The last colour is for PlotLine::rest.
inline constexpr size_t kPlotColours = 7;
// A colour; each component is in [0, 255].
struct Rgb {
  uint8_t red, green, blue;
};
inline constexpr Rgb kPalette[kPlotColours] = {{0, 114, 178},   {230, 159, 0},  {0, 158, 115},
                                               {204, 121, 167}, {86, 180, 233}, {213, 94, 0},
                                               {153, 153, 153}};
// The number of lines that a picture shows, without the line for the rest.
inline constexpr size_t kPlotLines = kPlotColours - 1;

inline Rgb ColourOf(const PlotLine& line, size_t index) {
  return kPalette[line.rest ? kPlotLines : index % kPlotLines];
}

}  // namespace xenoscope::report
