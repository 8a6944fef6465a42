// The tables of a trace's analyses, by domain and vCPU, as rules need them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/document.h"
#include "analysis/find_figure.h"
#include "base/ids.h"
#include "base/tsc.h"

namespace xenoscope::findings {

using analysis::Figure;
using analysis::FindGroup;
using analysis::FindRow;

// Returns the mean length of the row's intervals, in cycles; 0 without an interval.
double MeanLength(const analysis::MetricRow& row);

// The times of a vCPU, or of a domain's vCPUs together, in cycles.
struct StateTimes {
  Cycles running = 0;
  Cycles runnable = 0;
  Cycles blocked = 0;
  Cycles offline = 0;  // also while an HVM guest's vCPU waits for its device model

  StateTimes& operator+=(const StateTimes& more);
};

struct VcpuTables {
  VcpuRef vcpu;
  StateTimes times;
  const analysis::Section* section = nullptr;
};

struct DomainTables {
  DomainId domain;
  StateTimes times;
  std::vector<VcpuTables> vcpus;
};

// Visits the rows of the domain's vCPUs in the groups of this key.
template <typename Visitor>
void ForEachRow(const DomainTables& domain, std::string_view group, Visitor visit) {
  for (const VcpuTables& vcpu : domain.vcpus) {
    const analysis::MetricGroup* const found = FindGroup(*vcpu.section, group);
    if (found == nullptr) continue;
    for (const analysis::MetricRow& row : found->rows) visit(row);
  }
}

// Returns the part of the time in which the domain could run that it waited for a pCPU instead;
// nothing if that is below `least`, or below a hundredth of the trace, which has `traced` cycles.
std::optional<double> WaitingPart(const StateTimes& times, double least, Cycles traced);
// Returns the command that shows these sections of the summary for the domain.
std::vector<std::string> SummaryCommand(DomainId domain, std::string sections);

// Returns the domains of the document without the idle one. What it points to is in `document`.
std::vector<DomainTables> DomainsOf(const analysis::Document& document);

}  // namespace xenoscope::findings
