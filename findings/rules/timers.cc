// HVM and PVH domains that set their local APIC's timer very often: each time leaves the guest.
#include <fmt/format.h>

#include <string_view>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// Settings in a second of running time from which on they stand out: a tick of 1000 Hz sets the
// timer a thousand times a second.
constexpr double kMinSettings = 2000;

// Whether the handler of the exit wrote to an MSR of the timer: the TSC deadline, or the initial
// count.
bool IsTimer(std::string_view kind, std::string_view number) {
  const auto has = [number](std::string_view word) {
    return number.find(word) != std::string_view::npos;
  };
  return kind == "msr_write" && (has("TSC_DEADLINE") || has("TMICT"));
}

struct Settings {
  uint64_t count = 0;
  Cycles cycles = 0;
};

Settings SettingsOf(const DomainTables& domain) {
  Settings sum;
  ForEachRow(domain, "exits", [&sum](const analysis::MetricRow& reason) {
    for (const analysis::MetricRow& kind : reason.parts) {
      for (const analysis::MetricRow& number : kind.parts) {
        if (!IsTimer(kind.name, number.name)) continue;
        sum.count += Figure(number, "count");
        sum.cycles += Figure(number, "cycles");
      }
    }
  });
  return sum;
}

}  // namespace

void FindTimers(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr || results.clock.hz == 0) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    if (domain.times.running == 0) continue;
    const Settings settings = SettingsOf(domain);
    const double rate =
        static_cast<double>(settings.count) / results.clock.Seconds(domain.times.running);
    if (rate < kMinSettings) continue;
    Finding finding;
    finding.domain = domain.domain;
    finding.text =
        fmt::format("{} sets its timer {} times in a second of its running time",
                    results.Label(domain.domain), CountText(static_cast<uint64_t>(rate)));
    finding.advice =
        "Programs that sleep or wait with short timeouts do so, and kernels that poll. Each time "
        "leaves the guest.";
    finding.cycles = static_cast<double>(settings.cycles);
    finding.figures = {{"count", analysis::MetricUnit::kCount, settings.count},
                       {"per_second", analysis::MetricUnit::kFraction, rate}};
    finding.command = SummaryCommand(domain.domain, "exits");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
