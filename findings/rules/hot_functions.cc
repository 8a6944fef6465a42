// Functions that take much of all time.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/figure_text.h"
#include "base/mode.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

using correlate::Dimension;

// The share of all time from which on a function stands out. Tables colour rows from here on.
constexpr double kMinFunctionShare = 0.05;

// Whether rows are functions that no other column divides.
bool HasWholeFunctions(const std::vector<Dimension>& by) {
  constexpr std::array kWhole = {Dimension::kDomain, Dimension::kMode, Dimension::kImage,
                                 Dimension::kFunction};
  const auto has = [&by](Dimension one) { return std::ranges::find(by, one) != by.end(); };
  return has(Dimension::kDomain) && has(Dimension::kFunction) &&
         std::ranges::all_of(by, [&kWhole](Dimension one) {
           return std::ranges::find(kWhole, one) != kWhole.end();
         });
}

// Whether the name can be typed as it is: guests choose the names of their functions.
bool IsPlainWord(const std::string& name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !name.empty() && name.find_first_not_of(kPlain) == std::string::npos;
}

}  // namespace

void FindHotFunctions(const Results& results, std::vector<Finding>& out) {
  if (results.profile == nullptr || !results.sample_set->is_time) return;
  if (!HasWholeFunctions(results.by)) return;
  const double all = results.profile->result.cycles;
  // Shares are of the domains with samples: of one alone they say nothing of the others.
  const bool alone = results.profile->result.domains.size() == 1;
  for (const correlate::ProfileRow& row : results.profile->result.rows) {
    if (row.interval.low < kMinFunctionShare || row.function.starts_with('[')) continue;
    Finding finding;
    finding.domain = row.domain;
    finding.text =
        fmt::format("{} of {} takes {} of {} time ({} to {})", row.function,
                    results.Label(row.domain), ShareText(row.share), alone ? "its" : "the",
                    ShareText(row.interval.low), ShareText(row.interval.high));
    finding.cycles = row.cycles;
    finding.interval = CycleInterval{row.interval.low * all, row.interval.high * all};
    finding.figures = {{"function", analysis::MetricUnit::kText, row.function},
                       {"share", analysis::MetricUnit::kFraction, row.share},
                       {"low", analysis::MetricUnit::kFraction, row.interval.low},
                       {"high", analysis::MetricUnit::kFraction, row.interval.high}};
    finding.command = {"report", "--domain", fmt::format("{}", row.domain.value)};
    if (IsPlainWord(row.function)) finding.command = {"annotate", row.function};
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
