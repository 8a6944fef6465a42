// What pictures in a terminal have in common: titles, names beside lines, the axis of time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/timeline/plot.h"

namespace xenoscope::report {

std::string Coloured(std::string_view text, Rgb colour, bool on);

// Shortened in its middle, or padded: `width` columns.
std::string Padded(std::string_view text, size_t width, bool right);

// Two lines and an empty one.
std::string Titles(const std::string& title, const std::string& subtitle, bool colour);

// The axis of the time [from, to) in seconds, under `columns` columns that begin after `indent`.
std::string TimeAxis(double from, double to, size_t indent, size_t columns);

}  // namespace xenoscope::report
