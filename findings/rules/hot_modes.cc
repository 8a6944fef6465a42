// Domains whose time goes to Xen or to their kernel more than to their programs.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/figure_text.h"
#include "base/mode.h"
#include "findings/rule.h"

namespace xenoscope::findings {
namespace {

using correlate::Dimension;

// The part of a domain's time from which on Xen stands out, a choice; and the kernel: it takes more
// than all else.
constexpr double kMinXen = 0.25;
constexpr double kMinKernel = 0.5;
// A domain with less than this part of all time is no hot one.
constexpr double kMinDomain = 0.05;

// Returns the rows by domain and mode; null where the profile has none.
const std::vector<correlate::ProfileRow>* ModesOf(const Results& results) {
  const std::vector<Dimension>& by = results.by;
  if (by.size() < 2 || by[0] != Dimension::kDomain || by[1] != Dimension::kMode) return nullptr;
  const correlate::ProfileResult& result = results.profile->result;
  if (by.size() == 2) return &result.rows;
  return result.subtotals.empty() ? nullptr : &result.subtotals.front();
}

const char* ModeText(Mode mode) { return mode == Mode::kXen ? "Xen" : "the kernel"; }

}  // namespace

void FindHotModes(const Results& results, std::vector<Finding>& out) {
  if (results.profile == nullptr || !results.sample_set->is_time) return;
  const std::vector<correlate::ProfileRow>* modes = ModesOf(results);
  if (modes == nullptr) return;
  const correlate::ProfileResult& result = results.profile->result;
  for (const correlate::ProfileRow& row : *modes) {
    if (row.mode == Mode::kUser) continue;
    const auto domain =
        std::ranges::find(result.domains, row.domain, &correlate::ProfileRow::domain);
    if (domain == result.domains.end() || domain->share < kMinDomain) continue;
    // Where the domain's share is estimated, too, this is wider than it has to be: a domain with
    // more samples by chance has more of each mode.
    const double low = row.interval.low / domain->share;
    if (low < (row.mode == Mode::kXen ? kMinXen : kMinKernel)) continue;
    const double high = std::min(1.0, row.interval.high / domain->share);
    const double share = row.share / domain->share;
    Finding finding;
    finding.domain = row.domain;
    finding.text =
        fmt::format("{} takes {} of the time of {} ({} to {})", ModeText(row.mode),
                    ShareText(share), results.Label(row.domain), ShareText(low), ShareText(high));
    finding.cycles = row.cycles;
    finding.interval =
        CycleInterval{row.interval.low * result.cycles, row.interval.high * result.cycles};
    finding.figures = {{"mode", analysis::MetricUnit::kText, std::string(ToString(row.mode))},
                       {"share", analysis::MetricUnit::kFraction, share},
                       {"low", analysis::MetricUnit::kFraction, low},
                       {"high", analysis::MetricUnit::kFraction, high}};
    finding.command = {"report", "--by", "domain,mode,function", "--domain",
                       fmt::format("{}", row.domain.value)};
    out.push_back(std::move(finding));
  }
}

}  // namespace xenoscope::findings
