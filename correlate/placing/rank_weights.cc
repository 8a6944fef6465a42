#include "correlate/placing/rank_weights.h"

#include <numeric>

namespace xenoscope::correlate {
namespace {

// A place with a smaller part of all lengths than this is left out for a rank.
constexpr double kNegligiblePart = 1e-6;

}  // namespace

void RankWeights::Weigh(std::span<const CandidateInterval> intervals, size_t places,
                        size_t samples) {
  const RankDensity& density = DensityOf(RanksOf(samples));
  length_ = std::accumulate(
      intervals.begin(), intervals.end(), 0.0,
      [](double sum, const CandidateInterval& interval) { return sum + interval.length; });
  const double slot_length = length_ / static_cast<double>(kRankSlots);
  weights_.assign(places * kMaxRanks, 0);
  size_t slot = 0;
  double left = slot_length;  // of the slot
  for (const CandidateInterval& interval : intervals) {
    double* const weights = &weights_[interval.place * kMaxRanks];
    double length = interval.length;
    while (length > 0) {
      const bool ends_slot = length >= left && slot + 1 < kRankSlots;
      const double here = ends_slot ? left : length;
      const auto& by_rank = density[slot];
      for (size_t rank = 0; rank < kMaxRanks; ++rank) weights[rank] += here * by_rank[rank];
      length -= here;
      left -= here;
      if (!ends_slot) break;
      ++slot;
      left = slot_length;
    }
  }
}

bool RankWeights::Matters(size_t place, size_t rank) const {
  return !(At(place, rank) <= kNegligiblePart * length_);
}

}  // namespace xenoscope::correlate
