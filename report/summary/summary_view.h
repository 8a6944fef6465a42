// Writes the results of `xenoscope summary` as text, JSON (docs/summary.md lists the keys) or CSV.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// Returns the name of a domain; empty when there is none. Several threads may call it.
using DomainNames = std::function<std::string(DomainId)>;

// The parts that stay in a summary. Empty lists keep everything.
struct SummarySelection {
  std::vector<DomainId> domains;      // the domains that stay; the figures of the whole trace go
  std::vector<std::string> sections;  // the keys of groups; domains and vCPUs without a group go
};
void Select(const SummarySelection& selection, analysis::Document& document);
// Returns whether Select keeps such a group.
bool Keeps(const SummarySelection& selection, const analysis::GroupInfo& group);

// A host with more pCPUs or domains than these is wide: the text of its summary has a table for
// each pCPU, domain and vCPU only if the style says so.
inline constexpr size_t kMostPcpusShown = 16;
inline constexpr size_t kMostDomainsShown = 20;

// How the text of a summary is laid out.
struct SummaryStyle {
  TextStyle text;
  bool details = false;  // everything is shown, also tables that repeat figures of others
  bool chosen = false;   // so are those tables: sections were chosen
  bool pcpus = false;    // tables of pCPUs are shown of a wide host too
  bool vcpus = false;    // tables of domains and vCPUs are shown of a wide host too
};

// Returns whether the text of the summary of a host may show such a group, if the host is wide or
// not. What it does not show need not be counted.
bool TextMayShow(const analysis::GroupInfo& group, bool wide, const SummaryStyle& style);
bool IsWide(size_t pcpus, size_t domains);
bool IsWide(const analysis::AnalysisResult& result);
std::string SummaryText(const analysis::AnalysisResult& result, const DomainNames& names,
                        const SummaryStyle& style);

// Returns trace {bytes, records, ...}, domains [{domid, name, GROUP {ROW: FIGURES}, vcpus [{vcpu,
// ...}]}].
nlohmann::ordered_json SummaryJson(const analysis::AnalysisResult& result,
                                   const DomainNames& names);

// Returns one line for each row: domain, vcpu, group, name (with its parts after "/"), then count,
// cycles, p5, p50, p95, value.
std::string SummaryCsv(const analysis::Document& document);

// The groups of a section alone, for what is no trace. Shares are parts of the metadata's range.
std::string GroupsText(const analysis::Section& section, const analysis::TraceMetadata& metadata,
                       const SummaryStyle& style);
// Adds them to `out`, as the trace of SummaryJson has them.
void AddGroupsJson(const analysis::Section& section, nlohmann::ordered_json& out);

}  // namespace xenoscope::report
