#include "correlate/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "correlate/multiple_comparisons.h"

namespace xenoscope::correlate {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

void ExpectNear(Interval interval, double low, double high) {
  EXPECT_NEAR(interval.low, low, 1e-6);
  EXPECT_NEAR(interval.high, high, 1e-6);
}

TEST(Wilson, AgreesWithPublishedValues) {
  ExpectNear(Wilson(0.025, 2800), 0.01983537, 0.03146619);
  ExpectNear(Wilson(0.1, 10), 0.01787621, 0.40415);
  ExpectNear(Wilson(0.9, 10), 0.59585, 0.9821238);
  ExpectNear(Wilson(0, 10), 0, 0.2775328);
  ExpectNear(Wilson(1, 10), 1 - 0.2775328, 1);
}

TEST(Wilson, IsUninformativeWithoutSamples) { ExpectNear(Wilson(0.5, 0), 0, 1); }

TEST(Holm, AgreesWithPublishedValues) {
  EXPECT_THAT(Holm({0.1, 0.2, 0.3, 0.02}), ElementsAre(DoubleNear(0.3, 1e-12), 0.4, 0.4, 0.08));
  EXPECT_THAT(Holm({0.9, 0.8}), ElementsAre(1.0, 1.0));
  EXPECT_THAT(Holm({}), ElementsAre());
}

// One cluster of a sample each: independent samples, up to the m / (m - 1) of the small sample.
TEST(ShareVariance, SingletonClustersAreBinomial) {
  EXPECT_NEAR(ShareVariance({30, 30, 30}, {.n = 100, .nn = 100, .clusters = 100}), 0.3 * 0.7 / 99,
              1e-12);
}

// Clusters of ten samples that are all alike tell no more than one sample each.
TEST(ShareVariance, IdenticalSamplesCountAsOneCluster) {
  const ClusterTotals stratum{.n = 1000, .nn = 100 * 100, .clusters = 100};
  EXPECT_NEAR(ShareVariance({300, 30 * 100, 30 * 100}, stratum), 0.3 * 0.7 / 99, 1e-12);
}

TEST(ShareVariance, IsAtLeastIndependentVariance) {
  // Every cluster has exactly three of the row in ten.
  const ClusterTotals stratum{.n = 100, .nn = 10 * 100, .clusters = 10};
  EXPECT_NEAR(ShareVariance({30, 10 * 9, 10 * 30}, stratum), 0.3 * 0.7 / 100, 1e-12);
  EXPECT_EQ(ShareVariance({}, {}), 0);
}

TEST(ShareVariance, IdenticalSamplesHaveVariance) {
  const ClusterTotals stratum{.n = 2, .nn = 2, .clusters = 2};
  const double deviation = std::sqrt(ShareVariance({2, 2, 2}, stratum));
  EXPECT_GT(deviation, 0.15);
  EXPECT_LT(deviation, 0.25);
}

TEST(IntervalOf, ZeroVarianceIsAPoint) {
  ExpectNear(IntervalOf(0.4, 0, 100), 0.4, 0.4);
  ExpectNear(IntervalOf(0, 0.1, 10), 0, 0.2775328);
}

// Coverage on a made-up population: runs in which a function is on or off as a whole. The 95 %
// interval must hold the truth about 95 times in 100, where that of independent samples fails.
TEST(IntervalOf, CoversClusteredSamples) {
  std::mt19937_64 random(7);
  std::bernoulli_distribution on(0.2);
  constexpr int kTrials = 2000;
  int covered = 0;
  int covered_if_independent = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    ClusterSums row;
    ClusterTotals stratum;
    for (int run = 0; run < 200; ++run) {
      const double n = 1 + static_cast<double>(run % 9);
      const double x = on(random) ? n : 0;
      row.x += x;
      row.xx += x * x;
      row.xn += x * n;
      stratum.n += n;
      stratum.nn += n * n;
      ++stratum.clusters;
    }
    const double share = row.x / stratum.n;
    const Interval interval = IntervalOf(share, ShareVariance(row, stratum), stratum.n);
    covered += static_cast<int>(interval.low <= 0.2 && 0.2 <= interval.high);
    const Interval naive = Wilson(share, stratum.n);
    covered_if_independent += static_cast<int>(naive.low <= 0.2 && 0.2 <= naive.high);
  }
  EXPECT_GT(covered, kTrials * 93 / 100);
  EXPECT_LT(covered, kTrials * 97 / 100);
  EXPECT_LT(covered_if_independent, kTrials * 75 / 100);
}

TEST(PostStratified, AddsExactSizesTimesShares) {
  PostStratified estimate;
  estimate.Add(1000, 0.5, 0.01);
  estimate.Add(3000, 0.1, 0);
  EXPECT_DOUBLE_EQ(estimate.total(), 800);
  EXPECT_DOUBLE_EQ(estimate.variance(), 10000);
}

}  // namespace
}  // namespace xenoscope::correlate
