#include "findings/find.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/summary/registry.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

// The most findings of one rule: on a host with many guests one rule would leave no room for
// others.
constexpr size_t kMostOfRule = 3;

void KeepLargest(size_t most, std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::cycles);
  if (findings.size() > most) findings.resize(most);
}

}  // namespace

std::vector<Finding> Find(const Results& results) {
  std::vector<Finding> all;
  for (const Rule& rule : kRules) {
    std::vector<Finding> found;
    rule.find(results, found);
    KeepLargest(kMostOfRule, found);
    for (Finding& finding : found) finding.rule = rule.key;
    std::ranges::move(found, std::back_inserter(all));
  }
  KeepLargest(kMostFindings, all);
  return all;
}

void KeepDomains(std::span<const DomainId> domains, std::vector<Finding>& findings) {
  if (domains.empty()) return;
  std::erase_if(findings, [domains](const Finding& finding) {
    return finding.domain && std::ranges::find(domains, *finding.domain) == domains.end();
  });
}

std::vector<std::unique_ptr<analysis::Analysis>> TraceAnalyses(HypercallRule hypercalls) {
  std::vector<std::unique_ptr<analysis::Analysis>> analyses;
  analyses.push_back(analysis::MakePcpus());
  analyses.push_back(analysis::MakeRunstateTotals());
  analyses.push_back(analysis::MakePreemptions());
  analyses.push_back(analysis::MakeHazards());
  analyses.push_back(analysis::MakeAffinityTotals());
  analyses.push_back(analysis::MakeExitTotals());
  if (hypercalls == HypercallRule::kOn) analyses.push_back(analysis::MakePvEvents());
  return analyses;
}

}  // namespace xenoscope::findings
