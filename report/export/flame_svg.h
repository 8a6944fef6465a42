// A flame graph as an SVG file that stands alone: it opens in a browser, where a click enlarges a
// frame and a search marks frames; as a picture elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/export/flame_lines.h"

namespace xenoscope::report {

// `lines` in the order of their frames. What is narrower than a fifth of a pixel is not drawn.
std::string ToFlameSvg(const std::vector<FlameLine>& lines, FlameWeight weight,
                       std::string_view title);

}  // namespace xenoscope::report
