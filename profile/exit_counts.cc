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

std::vector<ExitCount> ExitCounter::Counts() const {
  std::vector<ExitCount> counts;
  counts.reserve(counts_.size());
  for (const auto& [key, count] : counts_) counts.push_back({key.first, key.second, count});
  std::ranges::sort(counts, {},
                    [](const ExitCount& each) { return std::pair(each.vcpu, each.exit); });
  return counts;
}

}  // namespace xenoscope::profile
