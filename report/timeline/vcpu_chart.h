// What each vCPU did over time and where, as a picture: a row a pCPU, with who ran on it most, and
// a row a vCPU, in columns of equal time. vcpu_chart_svg.h draws it for a browser,
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

struct VcpuChartRow {
  VcpuRef vcpu;
  std::string domain;          // its name
  std::vector<VcpuBin> parts;  // by column: of the column's time, together at most 1
  double ran = 0;              // of all that is shown
  double waited = 0;           // for a pCPU
  uint32_t colour = 0;         // counts the domains
};

struct PcpuChartRow {
  PcpuId pcpu;
  struct Part {
    float busy = 0;  // of the column's time
    uint32_t majority_vcpu =
        0;  // a vCPU's row: it ran most; VcpuChart::kNoVcpu: none of those shown
  };
  std::vector<Part> parts;
  double busy = 0;  // of all that is shown
};

struct VcpuChart {
  std::string title;
  std::string subtitle;
  double from = 0;  // seconds since the trace began
  double to = 0;
  std::vector<PcpuChartRow> pcpus;
  std::vector<VcpuChartRow> vcpus;
  size_t left_out = 0;  // vCPUs that ran less than these

  static constexpr uint32_t kNoVcpu = UINT32_MAX;
};

struct VcpuChartOptions {
  TscRange shown;                // not empty
  size_t columns = 1;            // at least 1; fewer when there are fewer cycles
  std::vector<DomainId> only{};  // empty: all domains
  size_t max_vcpus = 0;          // vCPUs, those that ran longest; 0: all
  std::function<std::string(DomainId)> domain_name{};  // empty where none is known
};

// Without title, subtitle and times. One pass up to the end of what is shown; memory: columns times
// vCPUs. The idle domain has no row.
VcpuChart ChartVcpus(const trace::TraceFile& trace, const VcpuChartOptions& options);

}  // namespace xenoscope::report
