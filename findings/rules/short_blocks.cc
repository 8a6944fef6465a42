// vCPUs that halt for less time than a halt and a wake-up cost.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// A halt and a wake-up cost two passes through the scheduler and an interrupt, and often a deeper
// idle state: some 20 us. A vCPU that blocks for less than that on average had better poll.
constexpr double kMaxSeconds = 20e-6;
// Blocks in a second of the trace from which on this costs more than 1 % of a pCPU.
constexpr double kMinBlockRate = 500;

}  // namespace

void FindShortBlocks(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr || results.traced == 0 || results.clock.hz == 0) return;
  const auto hz = static_cast<double>(results.clock.hz);
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    for (const VcpuTables& vcpu : domain.vcpus) {
      const analysis::MetricRow* const blocked = FindRow(*vcpu.section, "runstates", "blocked");
      if (blocked == nullptr) continue;
      const uint64_t count = Figure(*blocked, "count");
      const double mean = MeanLength(*blocked) / hz;
      const double rate = static_cast<double>(count) / results.clock.Seconds(results.traced);
      if (mean > kMaxSeconds || rate < kMinBlockRate) continue;
      Finding finding;
      finding.domain = domain.domain;
      finding.text = fmt::format("{} of {} blocks {} times a second, for only {} each (mean)",
                                 ToString(vcpu.vcpu), results.Label(domain.domain),
                                 CountText(static_cast<uint64_t>(rate)), SecondsText(mean));
      finding.advice =
          "It halts for less time than a halt and a wake-up take. Polling before the halt "
          "(cpuidle-haltpoll in the guest) or fewer, larger pieces of work avoid it.";
      finding.cycles = static_cast<double>(Figure(*blocked, "cycles"));
      finding.figures = {{"count", analysis::MetricUnit::kCount, count},
                         {"mean_seconds", analysis::MetricUnit::kFraction, mean},
                         {"per_second", analysis::MetricUnit::kFraction, rate}};
      finding.command = SummaryCommand(domain.domain, "runstates");
      out.push_back(std::move(finding));
    }
  }
}

}  // namespace xenoscope::findings
