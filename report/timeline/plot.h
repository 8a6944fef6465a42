// A picture as data, before anybody has decided how to draw it: plot_svg.h draws it for a browser,
// plot_terminal.h in a terminal. Of bounded size whatever the length of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "report/timeline/plot_axis.h"

namespace xenoscope::report {

struct PlotLine {
  std::string name;
  std::string figure;           // beside the name: an average, a total
  std::vector<double> values;   // SeriesPlot: one a bin
  std::vector<uint32_t> cells;  // ScatterPlot: how many points are in each cell, row by row
  bool rest = false;            // sums up lines that are not shown apart
};

// Lines over time in bins of equal length, bin i being [i, i + 1) * bin_seconds; the last one may
// be cut off by `seconds`.
struct SeriesPlot {
  std::string title;
  std::string subtitle;
  std::string y_title;
  double seconds = 0;  // the length of the trace
  double bin_seconds = 0;
  bool stacked = false;
  AxisKind y_kind = AxisKind::kNumber;
  std::vector<PlotLine> lines;
};

struct PlotPoint {
  size_t line = 0;
  double x = 0;  // seconds
  double y = 0;  // in [0, 1) of the axis
};

// Points over time, counted in columns * rows cells, the bottom row first; while there are few of
// them, each with its exact place.
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
  bool exact = true;  // `points` are all there are
};

// Colours that people with any colour vision tell apart on white: those of Okabe and Ito, "Color
// Universal Design" (2008), without black and yellow; the last is for PlotLine::rest.
inline constexpr size_t kPlotColours = 7;
struct Rgb {
  uint8_t red, green, blue;
};
inline constexpr Rgb kPalette[kPlotColours] = {{0, 114, 178},   {230, 159, 0},  {0, 158, 115},
                                               {204, 121, 167}, {86, 180, 233}, {213, 94, 0},
                                               {153, 153, 153}};
// Lines that a picture keeps apart, beside the one for the rest.
inline constexpr size_t kPlotLines = kPlotColours - 1;

inline Rgb ColourOf(const PlotLine& line, size_t index) {
  return kPalette[line.rest ? kPlotLines : index % kPlotLines];
}

}  // namespace xenoscope::report
