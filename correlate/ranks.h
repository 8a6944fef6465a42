// Weighs time by the order of a bracket's samples: it says something of when each of them was taken
// (docs/method.md §3.1).
#pragma once

#include <array>
#include <cstddef>

namespace xenoscope::correlate {

// The number of ranks by which samples of a bracket are told apart; if there are more samples,
// neighbours share a rank. Finer ranks would rely on a sampling clock that is as even.
inline constexpr size_t kMaxRanks = 16;
// The number of equal slots into which the time of a bracket is divided.
inline constexpr size_t kRankSlots = 64;

// Returns the rank of the sample that has `before` of the `samples` of its bracket and mode before
// it.
[[nodiscard]] constexpr size_t RankOf(size_t before, size_t samples) {
  return samples <= kMaxRanks ? before : before * kMaxRanks / samples;
}
[[nodiscard]] constexpr size_t RanksOf(size_t samples) {
  return samples < kMaxRanks ? samples : kMaxRanks;
}

// By slot and rank: the probability that of `ranks` samples at random instants the one of that rank
// is in that slot, times kRankSlots: 1 where the rank says nothing. Each slot's sum over the ranks
// is `ranks`, and each rank's over the slots is kRankSlots.
using RankDensity = std::array<std::array<double, kMaxRanks>, kRankSlots>;

// Returns the density for `ranks` in [1, kMaxRanks]. All are computed once.
const RankDensity& DensityOf(size_t ranks);

}  // namespace xenoscope::correlate
