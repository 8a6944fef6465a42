#include "profile/pipeline_options.h"

#include <algorithm>

namespace xenoscope::profile {
namespace {

using correlate::Dimension;

// The first version of which Xen on AMD logs stale addresses (method.md, section 2.2).
constexpr trace::XenVersion kFirstStale = trace::MakeVersion(4, 11);

}  // namespace

bool HasDimension(const std::vector<Dimension>& by, Dimension dimension) {
  return std::ranges::find(by, dimension) != by.end();
}

correlate::LoggedRip LoggedRipOf(const trace::Dialect& dialect) {
  const bool is_stale =
      dialect.vendor == trace::Vendor::kSvm && dialect.before_version > kFirstStale;
  return is_stale ? correlate::LoggedRip::kOfLastEntry : correlate::LoggedRip::kOfExit;
}

correlate::PlacingOptions PlacingOptionsFor(const trace::Dialect& dialect, TscRange sampled,
                                            Cycles longest_bracket,
                                            const std::vector<std::vector<Dimension>>& profiles) {
  const auto any_has = [&](Dimension dimension) {
    return std::ranges::any_of(
        profiles, [&](const std::vector<Dimension>& by) { return HasDimension(by, dimension); });
  };
  correlate::PlacingOptions placing;
  placing.sampled = sampled;
  placing.longest_bracket = longest_bracket;
  placing.vendor = dialect.vendor;
  placing.logged_rip = LoggedRipOf(dialect);
  placing.by_subreason = any_has(Dimension::kSubreason) || any_has(Dimension::kStack);
  placing.by_waiting = any_has(Dimension::kWaiting);
  placing.by_wakeup = any_has(Dimension::kWakeup);
  return placing;
}

correlate::EmRefinementOptions RefinementOptionsFor(const std::vector<Dimension>& by) {
  correlate::EmRefinementOptions refinement;
  refinement.by_address = HasDimension(by, Dimension::kAddress) ||
                          HasDimension(by, Dimension::kLine) || HasDimension(by, Dimension::kPage);
  refinement.by_process =
      HasDimension(by, Dimension::kProcess) || HasDimension(by, Dimension::kBehalf);
  refinement.by_pcpu = HasDimension(by, Dimension::kPcpu);
  refinement.by_placing =
      HasDimension(by, Dimension::kPlacing) && HasDimension(by, Dimension::kExit);
  refinement.by_subreason = HasDimension(by, Dimension::kSubreason);
  refinement.each_sample = HasDimension(by, Dimension::kStack);
  return refinement;
}

}  // namespace xenoscope::profile
