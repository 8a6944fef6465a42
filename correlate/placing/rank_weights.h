// Weighs places by the rank of a sample among those of its bracket: the first of several samples
// was more likely taken early than late (docs/method.md §3.1).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "correlate/placing/placed_sample.h"
#include "correlate/ranks.h"

namespace xenoscope::correlate {

// A stretch of the timeline in which samples of a bracket and mode can have been taken.
struct CandidateInterval {
  size_t place = 0;   // index into Candidates::places
  double length = 0;  // in cycles, or the part of them that counts
};

class RankWeights {
 public:
  // Weighs `places` places for `samples` samples by the intervals, which are in the order of time.
  // O((intervals + kRankSlots) kMaxRanks).
  void Weigh(std::span<const CandidateInterval> intervals, size_t places, size_t samples);
  // Whether a sample of the rank can have been in the place at all, but for a chance that is too
  // small to carry on.
  [[nodiscard]] bool Matters(size_t place, size_t rank) const;
  // The weight of the place for the rank, in cycles; those of a rank have no particular sum.
  [[nodiscard]] double At(size_t place, size_t rank) const {
    return weights_[place * kMaxRanks + rank];
  }

 private:
  double length_ = 0;            // of all intervals
  std::vector<double> weights_;  // by place and rank
};

}  // namespace xenoscope::correlate
