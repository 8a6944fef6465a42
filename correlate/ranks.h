// What the order of a bracket's samples tells of when each of them was taken (docs/method.md §3.1).
#pragma once

#include <array>
#include <cstddef>

namespace xenoscope::correlate {

// Samples of a bracket are told apart by rank up to so many; of more, neighbours share a rank.
// Finer ones would trust the sampling clock to be that even.
inline constexpr size_t kMaxRanks = 16;
// The time in which they were taken is looked at in so many equal slots.
inline constexpr size_t kRankSlots = 64;

// The rank of the sample that has `before` of the `samples` of its bracket and mode before it.
constexpr size_t RankOf(size_t before, size_t samples) {
  return samples <= kMaxRanks ? before : before * kMaxRanks / samples;
}
constexpr size_t RanksOf(size_t samples) { return samples < kMaxRanks ? samples : kMaxRanks; }

// By slot and rank: of `ranks` samples at random instants, how often the one of that rank is in
// that slot, times kRankSlots: 1 where its rank tells nothing. Each slot's sum over the ranks is
// `ranks`, and each rank's over the slots is kRankSlots.
using RankDensity = std::array<std::array<double, kMaxRanks>, kRankSlots>;

// 1 <= ranks <= kMaxRanks. Made once, all of them.
const RankDensity& DensityOf(size_t ranks);

}  // namespace xenoscope::correlate
