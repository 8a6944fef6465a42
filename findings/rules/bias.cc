// Domains whose part of the samples is not their part of the time: samples in step with the work,
// or samples that are missing.
#include <fmt/format.h>

#include <cmath>

#include "base/figure_text.h"
#include "correlate/estimate.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

// The difference of the two parts from which on it matters.
constexpr double kMinDifference = 0.01;

}  // namespace

void FindBias(const Results& results, std::vector<Finding>& out) {
  if (results.profile == nullptr || !results.sample_set->is_time) return;
  const double all = results.profile->result.cycles;
  for (const correlate::DomainCheck& check : results.profile->result.checks) {
    const double difference = std::abs(check.sampled - check.traced);
    const double margin = correlate::kNormal95 * check.error;
    if (check.Agrees() || difference - margin < kMinDifference) continue;
    Finding finding;
    finding.domain = check.domain;
    finding.text = fmt::format("{} has {} of the samples (±{}) but {} of the time",
                               results.Label(check.domain), ShareText(check.sampled),
                               ShareText(margin), ShareText(check.traced));
    finding.advice =
        "Shares of domains are those of the trace, but those of functions within it may be off: "
        "samples were lost, or are in step with the work. Record with another period.";
    finding.cycles = difference * all;
    finding.interval = CycleInterval{(difference - margin) * all, (difference + margin) * all};
    finding.figures = {{"sampled", analysis::MetricUnit::kFraction, check.sampled},
                       {"traced", analysis::MetricUnit::kFraction, check.traced}};
    finding.command = {"report", "--by", "domain"};
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
