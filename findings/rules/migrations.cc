// vCPUs that often move from one pCPU to another.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// Moves in a second of running time from which on they stand out: to fill a cache of 1 MiB again
// takes some 100 us, so that 200 moves cost about 2 % of the time.
constexpr double kMinMoveRate = 200;
constexpr uint64_t kMinMoves = 100;

}  // namespace

void FindMigrations(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr || results.clock.hz == 0) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    for (const VcpuTables& vcpu : domain.vcpus) {
      const analysis::MetricRow* const stays = FindRow(*vcpu.section, "affinity", "all");
      if (stays == nullptr || vcpu.times.running == 0) continue;
      const uint64_t count = Figure(*stays, "count");
      if (count <= kMinMoves) continue;
      const uint64_t moves = count - 1;
      const double rate = static_cast<double>(moves) / results.clock.Seconds(vcpu.times.running);
      if (rate < kMinMoveRate) continue;
      Finding finding;
      finding.domain = domain.domain;
      finding.text =
          fmt::format("{} of {} moves to another pCPU {} times in a second of its running time",
                      ToString(vcpu.vcpu), results.Label(domain.domain),
                      CountText(static_cast<uint64_t>(rate)));
      finding.advice =
          "Caches are cold after each move. Pin the vCPU, or raise the scheduler's migration "
          "resistance (boot option credit2_migrate_resist).";
      finding.cycles = static_cast<double>(vcpu.times.running);
      finding.figures = {{"moves", analysis::MetricUnit::kCount, moves},
                         {"per_second", analysis::MetricUnit::kFraction, rate}};
      finding.command = SummaryCommand(domain.domain, "affinity");
      out.push_back(std::move(finding));
    }
  }
}

}  // namespace xenoscope::findings
