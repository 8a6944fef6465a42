// Draws a chart of vCPUs in a terminal: a letter in each column for the vCPU that ran on a pCPU,
// and bars for the vCPUs.
#pragma once

#include <cstddef>
#include <string>

#include "report/timeline/plot_terminal.h"
#include "report/timeline/vcpu_chart.h"

namespace xenoscope::report {

// Returns the number of columns that fit.
size_t ChartColumns(const TerminalStyle& style);

std::string ToTerminal(const VcpuChart& chart, const TerminalStyle& style);

}  // namespace xenoscope::report
