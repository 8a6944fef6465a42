// Writes a flame graph as an SVG file that needs no other file. In a browser, a click enlarges a
// frame and a search marks frames. Other programs show it as a picture.
#pragma once

#include <string>
#include <string_view>

#include "report/export/flame_lines.h"

namespace xenoscope::report {

// Writes the SVG file. Frames narrower than a fifth of a pixel are not drawn.
std::string ToFlameSvg(const FlameGraph& graph, FlameWeight weight, std::string_view title);

}  // namespace xenoscope::report
