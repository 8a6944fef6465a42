// Draws what vCPUs did as SVG that needs nothing beside it.
#pragma once

#include <string>

#include "report/timeline/vcpu_chart.h"

namespace xenoscope::report {

inline constexpr size_t kSvgChartColumns = 760;

std::string ToSvg(const VcpuChart& chart);

}  // namespace xenoscope::report
