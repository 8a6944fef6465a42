// VM exits that keep a domain's vCPUs from their guest for much of the time: by reason, and by
// leaf, port, MSR or hypercall.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "base/figure_text.h"
#include "findings/exit_causes.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the domain's active time from which on exits stand out. Less than a twentieth gained
// is hardly noticed.
constexpr double kMinExitPart = 0.05;
constexpr std::string_view kHlt = "hlt";  // a halted vCPU is idle: its time is no cost

// Reason, kind and number of exits, as the summary names them.
using ExitKey = std::tuple<std::string, std::string, std::string>;

struct ExitSum {
  uint64_t count = 0;
  Cycles cycles = 0;
};
using ExitSums = std::map<ExitKey, ExitSum>;

void AddRow(const ExitKey& key, const analysis::MetricRow& row, ExitSums& sums) {
  ExitSum& sum = sums[key];
  sum.count += Figure(row, "count");
  sum.cycles += Figure(row, "cycles");
}

// Returns the exits of all vCPUs of the domain: by number where the handler recorded one.
ExitSums SumsOf(const DomainTables& domain) {
  ExitSums sums;
  ForEachRow(domain, "exits", [&sums](const analysis::MetricRow& reason) {
    for (const analysis::MetricRow& kind : reason.parts) {
      if (kind.name == kHlt) continue;
      if (kind.parts.empty()) AddRow({reason.name, kind.name, ""}, kind, sums);
      for (const analysis::MetricRow& number : kind.parts) {
        AddRow({reason.name, kind.name, number.name}, number, sums);
      }
    }
  });
  return sums;
}

// Whether the exit's reason alone says that the guest halted, where its handler recorded nothing.
bool IsHalt(const ExitKey& key) { return std::get<0>(key).ends_with("HLT"); }

std::string ExitText(const ExitKey& key) {
  const auto& [reason, kind, number] = key;
  if (kind.starts_with('(')) return reason;
  return fmt::format("{} ({}{}{})", reason, kind, number.empty() ? "" : " ", number);
}

}  // namespace

void FindExits(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    // A vCPU that waits for its device model is offline, in the middle of an exit.
    const auto active = static_cast<double>(domain.times.running + domain.times.offline);
    for (const auto& [key, sum] : SumsOf(domain)) {
      const auto cycles = static_cast<double>(sum.cycles);
      if (IsHalt(key) || active == 0 || cycles < kMinExitPart * active) continue;
      const auto& [reason, kind, number] = key;
      Finding finding;
      finding.domain = domain.domain;
      finding.text = fmt::format("{} leaves its guest {} times for {}: {} of its active time",
                                 results.Label(domain.domain), CountText(sum.count), ExitText(key),
                                 ShareText(cycles / active));
      finding.advice = UsualCause({reason, kind, number});
      finding.cycles = cycles;
      finding.figures = {
          {"exit", analysis::MetricUnit::kText, reason},
          {"subreason", analysis::MetricUnit::kText, fmt::format("{} {}", kind, number)},
          {"count", analysis::MetricUnit::kCount, sum.count},
          {"of_active", analysis::MetricUnit::kFraction, cycles / active}};
      finding.command = SummaryCommand(domain.domain, "exits");
      out.push_back(std::move(finding));
    }
  }
}

}  // namespace xenoscope::findings
