// Domains that wait for a pCPU, and what the pCPUs run meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the time in which a domain could run, from which on its waits stand out: a quarter of
// it means that its work takes a third longer.
constexpr double kMinWaitingPart = 0.25;
constexpr size_t kMostCulpritsNamed = 2;  // domains that run meanwhile

// Returns the domain of a vCPU's name "d1v0"; nothing for other words.
std::optional<DomainId> DomainOf(const std::string& vcpu) {
  uint16_t domain = 0;
  if (!vcpu.starts_with('d')) return std::nullopt;
  const char* const end = vcpu.data() + vcpu.size();
  const auto [stop, error] = std::from_chars(vcpu.data() + 1, end, domain);
  if (error != std::errc() || stop == end || *stop != 'v') return std::nullopt;
  return DomainId{domain};
}

struct Culprit {
  DomainId domain;
  Cycles cycles = 0;  // time for which others waited while it ran
};

// Returns the domains that ran while vCPUs of this one waited, the longest first.
std::vector<Culprit> CulpritsOf(const DomainTables& waiting) {
  std::map<DomainId, Cycles> sums;
  ForEachRow(waiting, "waited_for", [&sums](const analysis::MetricRow& row) {
    if (const auto domain = DomainOf(row.name)) sums[*domain] += Figure(row, "cycles");
  });
  std::vector<Culprit> culprits;
  culprits.reserve(sums.size());
  for (const auto& [domain, cycles] : sums) culprits.push_back({domain, cycles});
  std::ranges::stable_sort(culprits, std::ranges::greater(), &Culprit::cycles);
  return culprits;
}

// Returns ", most of all while these run: web (50.02%), db (49.10%)"; nothing if none did.
std::string MeanwhileText(const Results& results, const DomainTables& waiting) {
  std::string text;
  const std::vector<Culprit> culprits = CulpritsOf(waiting);
  for (size_t i = 0; i < std::min(culprits.size(), kMostCulpritsNamed); ++i) {
    const double part =
        static_cast<double>(culprits[i].cycles) / static_cast<double>(waiting.times.runnable);
    const std::string name = culprits[i].domain == waiting.domain
                                 ? "a vCPU of its own"
                                 : results.Label(culprits[i].domain);
    text += fmt::format("{}{} ({})", i == 0 ? ", most of all while these run: " : ", ", name,
                        ShareText(part));
  }
  return text;
}

}  // namespace

void FindWaits(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    if (domain.domain == kDom0) continue;  // FindStarvedDom0
    const std::optional<double> part = WaitingPart(domain.times, kMinWaitingPart, results.traced);
    if (!part) continue;
    Finding finding;
    finding.domain = domain.domain;
    finding.text =
        fmt::format("{} waits for a pCPU in {} of the time in which it could run{}",
                    results.Label(domain.domain), ShareText(*part), MeanwhileText(results, domain));
    finding.advice =
        "More vCPUs want to run than there are pCPUs for them. Give the domain more weight or "
        "other "
        "pCPUs (xl sched-credit2, xl vcpu-pin), or move work away.";
    finding.cycles = static_cast<double>(domain.times.runnable);
    finding.figures = {{"of_able_to_run", analysis::MetricUnit::kFraction, *part}};
    finding.command = SummaryCommand(domain.domain, "runstates,waited_for");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
