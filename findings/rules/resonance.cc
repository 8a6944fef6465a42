// Domains whose samples come at certain ages of their timeslices more often than chance allows: the
// sampling period is in step with their work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/figure_text.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

// The error of a distribution by `samples` independent samples, which 95 % of all samplings do not
// exceed at any age: sqrt(ln(2 / 0.05) / 2n) (Massart, Annals of Probability 18 (1990) 1269-1283).
double DistanceMargin(uint64_t samples) {
  return std::sqrt(std::log(2 / 0.05) / (2 * static_cast<double>(samples)));
}

}  // namespace

void FindResonance(const Results& results, std::vector<Finding>& out) {
  // Only samples of all time are uniform in it.
  if (results.profile == nullptr || !results.sample_set->stratified) return;
  for (const correlate::PlacingCheck& check : results.profile->placing_checks) {
    if (!check.IsAliased()) continue;
    const double margin = DistanceMargin(check.exact);
    // Samples whose instants are not known may have any age.
    const double unknown =
        static_cast<double>(check.missed) / static_cast<double>(check.exact + check.missed);
    const double low = std::max(0.0, check.distance - margin - unknown);
    const double high = std::min(1.0, check.distance + margin);
    Finding finding;
    finding.domain = check.domain;
    finding.text = fmt::format(
        "samples are in step with the work of {}: {} ({} to {}) of them are too early or too late "
        "in its timeslices",
        results.Label(check.domain), ShareText(check.distance), ShareText(low), ShareText(high));
    finding.advice =
        "Functions that run early or late in a timeslice have too large or too small shares. "
        "Record with another period, or with --source vcpu, which samples at random.";
    finding.cycles = check.distance * check.ran;
    finding.interval = CycleInterval{low * check.ran, high * check.ran};
    finding.figures = {{"distance", analysis::MetricUnit::kFraction, check.distance},
                       {"samples", analysis::MetricUnit::kCount, check.exact}};
    finding.command = {"report", "--by", "function", "--domain",
                       fmt::format("{}", check.domain.value)};
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
