// Finds what stands out in the results of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/analysis.h"
#include "base/ids.h"
#include "findings/finding.h"
#include "findings/results.h"

namespace xenoscope::findings {

// The number of findings that are worth reading.
inline constexpr size_t kMostFindings = 10;

// Returns the findings of all rules, those that concern the most time first: at most kMostFindings,
// and three of one rule. Empty where nothing stands out.
std::vector<Finding> Find(const Results& results);

// Keeps the findings about these domains, and those about no single domain. No domains: all.
void KeepDomains(std::span<const DomainId> domains, std::vector<Finding>& findings);

// Whether hypercalls are analysed. PV guests write so many of their records that this takes a tenth
// of the time of a report.
enum class HypercallRule : uint8_t { kOff, kOn };

// Returns new analyses of a trace with all that rules look at.
std::vector<std::unique_ptr<analysis::Analysis>> TraceAnalyses(HypercallRule hypercalls);

}  // namespace xenoscope::findings
