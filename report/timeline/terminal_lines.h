// The common parts of pictures in a terminal: titles, names beside lines, the axis of time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/timeline/plot.h"

namespace xenoscope::report {

// Returns the text in the colour when `on` is true; else the text unchanged.
std::string Coloured(std::string_view text, Rgb colour, bool on);

// Returns the text shortened in its middle, or padded, to `width` columns.
std::string Padded(std::string_view text, size_t width, bool right);

// Returns two lines and an empty line.
std::string Titles(const std::string& title, const std::string& subtitle, bool colour);

// Returns the axis of the half-open time [from, to) in seconds, under `columns` columns that begin
// after `indent` columns.
std::string TimeAxis(double from, double to, size_t indent, size_t columns);

}  // namespace xenoscope::report
