// Draws what vCPUs did in a terminal: a letter a column for who ran on a pCPU, bars for the vCPUs.
#pragma once

#include <cstddef>
#include <string>

#include "report/timeline/plot_terminal.h"
#include "report/timeline/vcpu_chart.h"

namespace xenoscope::report {

// How many columns fit.
size_t ChartColumns(const TerminalStyle& style);

std::string ToTerminal(const VcpuChart& chart, const TerminalStyle& style);

}  // namespace xenoscope::report
