// The common parts of SVG pictures: numbers, colours, the beginning of the file.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "report/timeline/plot.h"

namespace xenoscope::report {

// Appends formatted text to `out`.
template <typename... Args>
void Put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// Returns a coordinate with as few digits as a tenth of a pixel needs.
std::string Px(double value);

// Returns the colour as "#0072b2".
std::string Hex(Rgb colour);

// A size in pixels.
struct PixelSize {
  double width = 0;
  double height = 0;
};

// Appends the svg element's start, a white background, and the title and subtitle, which begin at
// `left` pixels.
void OpenSvg(std::string& out, PixelSize size, double left, const std::string& title,
             const std::string& subtitle);

}  // namespace xenoscope::report
