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

void ExitCounter::OnMark(const correlate::Mark& mark) {
  EndEntry(mark.vcpu_index, mark.tsc);
  if (!sampled_.Contains(mark.tsc)) return;
  PvEntries& entries = entries_[{mark.vcpu.domain, mark.kind}];
  entries.domain = mark.vcpu.domain;
  entries.kind = mark.kind;
  ++entries.count;
  if (mark.vcpu_index >= open_.size()) open_.resize(size_t{mark.vcpu_index} + 1);
  open_[mark.vcpu_index] = {&entries, mark.tsc};
}

void ExitCounter::EndEntry(uint32_t vcpu_index, Tsc at) {
  if (vcpu_index >= open_.size() || open_[vcpu_index].entries == nullptr) return;
  OpenEntry& open = open_[vcpu_index];
  const TscRange range{open.begin, std::max(open.begin, at)};
  open.entries->at_most += range.Intersect(sampled_).Length();
  open = {};
}

std::vector<PvEntries> ExitCounter::Entries() const {
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
