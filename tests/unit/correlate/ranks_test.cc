#include "correlate/ranks.h"

#include <gtest/gtest.h>

namespace xenoscope::correlate {
namespace {

TEST(Ranks, DensityIsThatOfOrderStatistics) {
  const double slots = kRankSlots;
  for (size_t n = 1; n <= kMaxRanks; ++n) {
    const RankDensity& density = DensityOf(n);
    for (const auto& slot : density) {
      double sum = 0;
      for (size_t rank = 0; rank < n; ++rank) {
        EXPECT_GE(slot[rank], 0);
        sum += slot[rank];
      }
      EXPECT_NEAR(sum, static_cast<double>(n), 1e-9);  // all of them together are uniform
    }
    for (size_t rank = 0; rank < n; ++rank) {
      double all = 0;
      double mean = 0;
      double square = 0;
      for (size_t slot = 0; slot < kRankSlots; ++slot) {
        const double at = (static_cast<double>(slot) + 0.5) / slots;
        all += density[slot][rank] / slots;
        mean += at * density[slot][rank] / slots;
        square += at * at * density[slot][rank] / slots;
      }
      // Beta(k, n + 1 - k), but for the width of slots.
      const double k = static_cast<double>(rank) + 1;
      const auto m = static_cast<double>(n);
      EXPECT_NEAR(all, 1, 1e-9);
      EXPECT_NEAR(mean, k / (m + 1), 1e-3);
      EXPECT_NEAR(square - mean * mean, k * (m + 1 - k) / (m + 1) / (m + 1) / (m + 2), 1e-4);
    }
  }
}

TEST(Ranks, ManySamplesShareRanks) {
  EXPECT_EQ(RanksOf(3), 3U);
  EXPECT_EQ(RankOf(2, 3), 2U);
  EXPECT_EQ(RanksOf(1000), kMaxRanks);
  EXPECT_EQ(RankOf(0, 1000), 0U);
  EXPECT_EQ(RankOf(999, 1000), kMaxRanks - 1);
  for (size_t i = 1; i < 1000; ++i) EXPECT_LE(RankOf(i, 1000) - RankOf(i - 1, 1000), 1U);
}

}  // namespace
}  // namespace xenoscope::correlate
