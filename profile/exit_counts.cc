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

void ExitCounter::Add(const correlate::Mark& mark, TscRange at_most) {
  PvEntries& entries = entries_[{mark.vcpu.domain, mark.kind}];
  entries.domain = mark.vcpu.domain;
  entries.kind = mark.kind;
  ++entries.count;
  entries.at_most += at_most.Length();
}

std::vector<PvEntries> ExitCounter::Entries() {
  bounds_.Finish([this](const auto&... entry) { Add(entry...); });
  std::vector<PvEntries> entries;
  for (const auto& [key, each] : entries_) entries.push_back(each);
  return entries;
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
