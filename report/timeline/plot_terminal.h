// Draws a picture in a terminal: a row of bars for each line of a series, and points as braille
// characters.
#pragma once

#include <cstddef>
#include <string>

#include "report/timeline/plot.h"

namespace xenoscope::report {

// The size of the terminal, in columns and rows of characters, and whether it has colours.
struct TerminalStyle {
  size_t width = 80;
  size_t height = 24;
  bool colour = false;
};

// Returns the number of bins of a series, and of columns and rows of cells of a scatter plot, that
// fit.
size_t TerminalBins(const TerminalStyle& style);
size_t TerminalColumns(const TerminalStyle& style);
size_t TerminalRows(const TerminalStyle& style);

std::string ToTerminal(const SeriesPlot& plot, const TerminalStyle& style);
std::string ToTerminal(const ScatterPlot& plot, const TerminalStyle& style);

}  // namespace xenoscope::report
