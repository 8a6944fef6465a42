// Draws a picture in a terminal: a row of bars for each line of a series, points in braille.
#pragma once

#include <cstddef>
#include <string>

#include "report/timeline/plot.h"

namespace xenoscope::report {

struct TerminalStyle {
  size_t width = 80;
  size_t height = 24;
  bool colour = false;
};

// How many bins a series, and columns and rows of cells a scatterplot, should have to fit.
size_t TerminalBins(const TerminalStyle& style);
size_t TerminalColumns(const TerminalStyle& style);
size_t TerminalRows(const TerminalStyle& style);

std::string ToTerminal(const SeriesPlot& plot, const TerminalStyle& style);
std::string ToTerminal(const ScatterPlot& plot, const TerminalStyle& style);

}  // namespace xenoscope::report
