// Domains that reach their local APIC by memory, or change its priority: each time leaves the
// guest. Alone, none of its registers may cost enough to be a finding.
#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the domain's active time from which on it stands out, as for other exits.
constexpr double kMinOfActive = 0.05;

bool IsOfReason(std::string_view reason) {
  const auto has = [reason](std::string_view word) {
    return reason.find(word) != std::string_view::npos;
  };
  return has("APIC_ACCESS") || has("TPR") || has("CR8");
}

struct Accesses {
  uint64_t count = 0;
  Cycles cycles = 0;
  std::set<std::string_view> kinds;
};

void AddAccess(const analysis::MetricRow& row, Accesses& sum) {
  sum.count += Figure(row, "count");
  sum.cycles += Figure(row, "cycles");
  sum.kinds.insert(row.name);
}

Accesses AccessesOf(const DomainTables& domain) {
  Accesses sum;
  ForEachRow(domain, "exits", [&sum](const analysis::MetricRow& reason) {
    if (IsOfReason(reason.name)) return AddAccess(reason, sum);
    for (const analysis::MetricRow& kind : reason.parts) {
      if (kind.name != "npf") continue;
      for (const analysis::MetricRow& number : kind.parts) {
        if (number.name.find("apic") != std::string::npos) AddAccess(number, sum);
      }
    }
  });
  return sum;
}

}  // namespace

void FindLocalApic(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    const auto active = static_cast<double>(domain.times.running + domain.times.offline);
    const Accesses accesses = AccessesOf(domain);
    const auto cycles = static_cast<double>(accesses.cycles);
    // One kind alone is a finding of its own: that of exits.
    if (active == 0 || accesses.kinds.size() < 2 || cycles < kMinOfActive * active) continue;
    Finding finding;
    finding.domain = domain.domain;
    finding.text = fmt::format(
        "{} reaches its local APIC by memory {} times: {} of its active time",
        results.Label(domain.domain), CountText(accesses.count), ShareText(cycles / active));
    finding.advice =
        "In x2APIC mode the guest uses MSRs instead; with APICv (Intel) or AVIC (AMD) most of it "
        "needs no exit.";
    finding.cycles = cycles;
    finding.figures = {{"count", analysis::MetricUnit::kCount, accesses.count},
                       {"of_active", analysis::MetricUnit::kFraction, cycles / active}};
    finding.command = SummaryCommand(domain.domain, "exits");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
