// Draws a chart of vCPUs as SVG that needs no other file.
#pragma once

#include <string>

#include "report/timeline/vcpu_chart.h"

namespace xenoscope::report {

// The number of columns of a chart for ToSvg.
inline constexpr size_t kSvgChartColumns = 760;

std::string ToSvg(const VcpuChart& chart);

}  // namespace xenoscope::report
