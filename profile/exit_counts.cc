#include "profile/exit_counts.h"

#include <algorithm>

namespace xenoscope::profile {

using correlate::Dimension;

bool HasExitCounts(const std::vector<Dimension>& by) {
  const auto is_whole = [](Dimension dimension) {
    return dimension == Dimension::kDomain || dimension == Dimension::kVcpu ||
           dimension == Dimension::kExit;
  };
  return std::ranges::find(by, Dimension::kExit) != by.end() && std::ranges::all_of(by, is_whole);
}

}  // namespace xenoscope::profile
