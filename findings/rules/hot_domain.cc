// The domain that runs longer than all others together.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the time of all domains from which on one domain stands out: it runs longer than all
// others together.
constexpr double kMinDomainShare = 0.5;

}  // namespace

void FindHotDomain(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  const std::vector<DomainTables> domains = DomainsOf(*results.trace);
  Cycles all = 0;
  size_t busy = 0;
  for (const DomainTables& domain : domains) {
    all += domain.times.running;
    if (domain.times.running > 0) ++busy;
  }
  if (busy < 2) return;
  for (const DomainTables& domain : domains) {
    const double share = static_cast<double>(domain.times.running) / static_cast<double>(all);
    if (share < kMinDomainShare) continue;
    Finding finding;
    finding.domain = domain.domain;
    finding.text = fmt::format("{} runs longer than all other domains together: {} of their time",
                               results.Label(domain.domain), ShareText(share));
    finding.cycles = static_cast<double>(domain.times.running);
    finding.figures = {{"share", analysis::MetricUnit::kFraction, share}};
    finding.command = {"summary", "--sections", "domains"};
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
