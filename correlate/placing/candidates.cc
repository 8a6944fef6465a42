#include "correlate/placing/candidates.h"

#include <algorithm>

namespace xenoscope::correlate {

uint64_t Candidates::ClusterAt(double part) const {
  if (clusters.empty()) return 0;
  const double at = part * static_cast<double>(clusters.back().until);
  const auto cluster = std::partition_point(
      clusters.begin(), clusters.end(),
      [at](const ClusterShare& share) { return static_cast<double>(share.until) <= at; });
  return cluster == clusters.end() ? clusters.back().number : cluster->number;
}

size_t Candidates::AddWeight(const Place& place) {
  for (size_t i = 0; i < places.size(); ++i) {
    Place& known = places[i];
    if (known.context == place.context && known.pcpu == place.pcpu && known.to == place.to) {
      known.weight += place.weight;
      return i;
    }
  }
  places.push_back(place);
  return places.size() - 1;
}

void Candidates::AddToCluster(uint64_t number, Cycles length) {
  const Cycles before = clusters.empty() ? 0 : clusters.back().until;
  if (clusters.empty() || clusters.back().number != number) clusters.push_back({before, number});
  clusters.back().until += length;
}

uint64_t ClusterOf(uint64_t timeslice_id, ContextKind kind, TscRange bracket) {
  constexpr int kBracketBits = 20;
  constexpr int kBracketsApart = 10;
  constexpr uint64_t kBracketMask = (uint64_t{1} << kBracketBits) - 1;
  const uint64_t number = (bracket.begin.value >> kBracketsApart & kBracketMask) | 1;
  return timeslice_id << kBracketBits | (kind == ContextKind::kLost ? number : 0);
}

}  // namespace xenoscope::correlate
