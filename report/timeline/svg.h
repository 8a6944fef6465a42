// What pictures as SVG have in common: numbers, colours, the head.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "report/timeline/plot.h"

namespace xenoscope::report {

template <typename... Args>
void Put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// A coordinate with as few digits as a tenth of a pixel needs.
std::string Px(double value);

// "#0072b2"
std::string Hex(Rgb colour);

struct PixelSize {
  double width = 0;
  double height = 0;
};

// The element, a white ground, title and subtitle, which begin at `left`.
void OpenSvg(std::string& out, PixelSize size, double left, const std::string& title,
             const std::string& subtitle);

}  // namespace xenoscope::report
