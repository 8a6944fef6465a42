// `xenoscope summary`: what the analyses found, as text, JSON (the keys of docs/summary.md) or CSV.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// A domain's name, or empty.
using DomainNames = std::function<std::string(DomainId)>;

// What to leave in a summary; empty lists leave all.
struct SummarySelection {
  std::vector<DomainId> domains;      // and nothing of the trace as a whole
  std::vector<std::string> sections;  // keys of groups; domains and vCPUs without any are left out
};
void Select(const SummarySelection& selection, analysis::Document& document);

struct SummaryStyle {
  TextStyle text;
  bool details = false;  // tables that repeat what others tell, too
};
std::string SummaryText(const analysis::AnalysisResult& result, const DomainNames& names,
                        const SummaryStyle& style);

// trace {bytes, records, ...}, domains [{domid, name, GROUP {ROW: FIGURES}, vcpus [{vcpu, ...}]}]
nlohmann::ordered_json SummaryJson(const analysis::AnalysisResult& result,
                                   const DomainNames& names);

// One line a row: domain, vcpu, group, name (parts after "/"), then count, cycles, p5, p50, p95,
// value.
std::string SummaryCsv(const analysis::AnalysisResult& result);

}  // namespace xenoscope::report
