// Draws a picture as SVG that needs no other file: it has no scripts, fonts or styles from
// elsewhere. It has at most a few megabytes, usually much less, however many points there are.
#pragma once

#include <string>

#include "report/timeline/plot.h"

namespace xenoscope::report {

std::string ToSvg(const SeriesPlot& plot);
std::string ToSvg(const ScatterPlot& plot);

}  // namespace xenoscope::report
