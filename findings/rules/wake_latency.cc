// vCPUs that wait longer than a timeslice after they were woken.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// Wake-ups from which on a mean is worth a sentence.
constexpr uint64_t kMinWakes = 30;
// A wait below this does not delay what people or networks wait for, in seconds.
constexpr double kMinWait = 0.001;

// Returns the mean timeslice of vCPUs, idle ones left out, in cycles; 0 if nothing ran.
double MeanTimeslice(const std::vector<DomainTables>& domains) {
  uint64_t count = 0;
  Cycles cycles = 0;
  for (const DomainTables& domain : domains) {
    for (const VcpuTables& vcpu : domain.vcpus) {
      const analysis::MetricRow* const running = FindRow(*vcpu.section, "runstates", "running");
      if (running == nullptr) continue;
      count += Figure(*running, "count");
      cycles += Figure(*running, "cycles");
    }
  }
  return count == 0 ? 0 : static_cast<double>(cycles) / static_cast<double>(count);
}

}  // namespace

void FindWakeLatency(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr || results.clock.hz == 0) return;
  const auto hz = static_cast<double>(results.clock.hz);
  const std::vector<DomainTables> domains = DomainsOf(*results.trace);
  const double timeslice = MeanTimeslice(domains);
  for (const DomainTables& domain : domains) {
    if (domain.domain == kDom0) continue;  // FindStarvedDom0
    for (const VcpuTables& vcpu : domain.vcpus) {
      const analysis::MetricRow* const wake = FindRow(*vcpu.section, "runnable", "wake");
      if (wake == nullptr || Figure(*wake, "count") < kMinWakes) continue;
      const double wait = MeanLength(*wake);
      if (wait <= timeslice || wait < kMinWait * hz) continue;
      Finding finding;
      finding.domain = domain.domain;
      finding.text = fmt::format(
          "{} of {} waits {} after a wake-up (mean of {}), longer than a timeslice lasts ({})",
          ToString(vcpu.vcpu), results.Label(domain.domain), SecondsText(wait / hz),
          CountText(Figure(*wake, "count")), SecondsText(timeslice / hz));
      finding.advice =
          "What it waits for (network, disk, timers) is late by this. More weight, other pCPUs or "
          "a "
          "shorter ratelimit (xl sched-credit2 -s -r) let it run sooner.";
      finding.cycles = static_cast<double>(Figure(*wake, "cycles"));
      finding.figures = {
          {"mean_wait_seconds", analysis::MetricUnit::kFraction, wait / hz},
          {"mean_timeslice_seconds", analysis::MetricUnit::kFraction, timeslice / hz},
          {"wakes", analysis::MetricUnit::kCount, Figure(*wake, "count")}};
      finding.command = SummaryCommand(domain.domain, "runnable,waited_for");
      out.push_back(std::move(finding));
    }
  }
}

}  // namespace xenoscope::findings
