// dom0 that waits for a pCPU: then back ends, device models and the recording itself are late.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the time in which dom0 could run. It is smaller than for guests, as guests' I/O waits
// with dom0.
constexpr double kMinStarvedPart = 0.1;
// The number of times as late as was asked for from which on drains of samples are late.
constexpr double kLate = 2;

// Returns " Samples were drained every 85 ms, and every 5 ms was asked for.", or nothing.
std::string LateDrainText(const recording::RecordingInfo& info) {
  for (const recording::SourceInfo& source : info.sources) {
    const auto median = static_cast<double>(source.drains.p50_ns);
    const auto asked = static_cast<double>(source.drain_interval_ns);
    if (source.name != "xenoprof" && source.name != "perf") continue;
    if (asked == 0 || median < kLate * asked) continue;
    return fmt::format(" Samples were drained every {} (median), but every {} was asked for.",
                       SecondsText(median * 1e-9), SecondsText(asked * 1e-9));
  }
  return "";
}

std::string AdviceFor(const recording::RecordingInfo* info) {
  std::string advice =
      "Give dom0 a pCPU of its own (dom0_max_vcpus=1 dom0_vcpus_pin, guests pinned elsewhere)";
  advice += info != nullptr && info->boost
                ? fmt::format(": its weight, which --boost raised to {}, is not enough.",
                              info->boost->raised)
                : " or more weight (xl sched-credit2 -d 0 -w 2048; record --boost does it while it "
                  "records).";
  if (info != nullptr) advice += LateDrainText(*info);
  return advice;
}

}  // namespace

void FindStarvedDom0(const Results& results, std::vector<Finding>& out) {
  if (results.trace == nullptr) return;
  for (const DomainTables& domain : DomainsOf(*results.trace)) {
    if (domain.domain != kDom0) continue;
    const std::optional<double> part = WaitingPart(domain.times, kMinStarvedPart, results.traced);
    if (!part) continue;
    Finding finding;
    finding.domain = kDom0;
    finding.text = fmt::format(
        "{} waits for a pCPU in {} of the time in which it could run, and so do guests' "
        "disks, networks and device models",
        results.Label(kDom0), ShareText(*part));
    finding.advice = AdviceFor(results.info);
    finding.cycles = static_cast<double>(domain.times.runnable);
    finding.figures = {{"of_able_to_run", analysis::MetricUnit::kFraction, *part}};
    finding.command = SummaryCommand(kDom0, "runstates,runnable,waited_for");
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
