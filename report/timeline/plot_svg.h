// Draws a picture as SVG that needs nothing beside it: no scripts, no fonts, no styles from
// elsewhere. At most some megabytes, usually far less, however many points there are.
#pragma once

#include <string>

#include "report/timeline/plot.h"

namespace xenoscope::report {

std::string ToSvg(const SeriesPlot& plot);
std::string ToSvg(const ScatterPlot& plot);

}  // namespace xenoscope::report
