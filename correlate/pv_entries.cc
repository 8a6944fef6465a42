#include "correlate/pv_entries.h"

#include <algorithm>
#include <cstddef>

namespace xenoscope::correlate {

std::optional<PvEntry> PvEntryBounds::OnMark(const Mark& mark) {
  std::optional<PvEntry> before = End(mark.vcpu_index, mark.tsc);
  if (!sampled_.Contains(mark.tsc)) return before;
  if (mark.vcpu_index >= open_.size()) open_.resize(size_t{mark.vcpu_index} + 1);
  open_[mark.vcpu_index] = mark;
  return before;
}

std::optional<PvEntry> PvEntryBounds::OnRunstateInterval(const RunstateInterval& interval) {
  if (interval.state != TimelineState::kRunning) return std::nullopt;
  return End(interval.vcpu_index, interval.range.end);
}

std::optional<PvEntry> PvEntryBounds::End(uint32_t vcpu_index, Tsc at) {
  if (vcpu_index >= open_.size() || !open_[vcpu_index]) return std::nullopt;
  const Mark& mark = *open_[vcpu_index];
  const TscRange bound{mark.tsc, std::max(mark.tsc, at)};
  PvEntry entry{mark, bound.Intersect(sampled_)};
  open_[vcpu_index].reset();
  return entry;
}

std::vector<PvEntry> PvEntryBounds::Rest() const {
  std::vector<PvEntry> rest;
  for (const std::optional<Mark>& mark : open_) {
    if (mark) rest.push_back({*mark, {mark->tsc, mark->tsc}});
  }
  return rest;
}

}  // namespace xenoscope::correlate
