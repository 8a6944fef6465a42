// A chart of vCPUs over time: a row for each pCPU with the vCPU that ran there most, and a row for
// each vCPU with its activity, in columns of equal time. vcpu_chart_svg.h draws it for a browser,
// vcpu_chart_terminal.h in a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "report/timeline/time_bins.h"
#include "trace/trace_file.h"

namespace xenoscope::report {

// The row of a vCPU.
struct VcpuChartRow {
  VcpuRef vcpu;
  std::string domain;          // the domain's name
  std::vector<VcpuBin> parts;  // shares of each column's time; a column's sum is at most 1
  // The shares of the time that is shown in which the vCPU ran and in which it waited for a pCPU.
  double ran = 0;
  double waited = 0;
  uint32_t colour = 0;  // the number of the domain, from 0
};

// The row of a pCPU.
struct PcpuChartRow {
  PcpuId pcpu;
  struct Part {
    float busy = 0;  // the busy share of the column's time
    // The row of the vCPU that ran most; VcpuChart::kNoVcpu when that vCPU has no row.
    uint32_t majority_vcpu = 0;
  };
  std::vector<Part> parts;
  double busy = 0;  // the busy share of the time that is shown
};

// The whole chart.
struct VcpuChart {
  std::string title;
  std::string subtitle;
  // The half-open range [from, to) of time that is shown, in seconds since the trace began.
  double from = 0;
  double to = 0;
  std::vector<PcpuChartRow> pcpus;
  std::vector<VcpuChartRow> vcpus;
  size_t left_out = 0;  // the number of vCPUs that ran less than these

  static constexpr uint32_t kNoVcpu = UINT32_MAX;
};

// What a chart shows.
struct VcpuChartOptions {
  TscRange shown;                // the half-open range of time that is shown; not empty
  size_t columns = 1;            // at least 1; the chart has fewer when there are fewer cycles
  std::vector<DomainId> only{};  // the domains that are shown; empty: all
  size_t max_vcpus = 0;          // the bound of vCPUs: those that ran longest; 0: no bound
  std::function<std::string(DomainId)> domain_name{};  // the name of a domain; empty when unknown
};

// Makes a chart without title, subtitle and times. It reads the trace once, up to the end of the
// time that is shown. Memory: columns times vCPUs. The idle domain has no row.
VcpuChart ChartVcpus(const trace::TraceFile& trace, const VcpuChartOptions& options);

}  // namespace xenoscope::report
