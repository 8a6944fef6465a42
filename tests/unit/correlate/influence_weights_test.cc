#include "correlate/influence_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

struct Seen {
  std::vector<double> lengths;
  std::vector<double> expected;
};

// By part, of all samples: sums of what they weigh, and of its squares.
struct WeightSums {
  std::vector<double> weights;
  std::vector<double> squares;
  double farthest_from_one = 0;  // what a sample's weights sum to
};

WeightSums SumsOf(const std::vector<Seen>& samples) {
  const size_t parts = samples[0].lengths.size();
  InfluenceWeights influence;
  influence.Begin(parts);
  for (const Seen& sample : samples) influence.Add(sample.lengths, sample.expected);
  influence.Conclude();
  WeightSums sums{std::vector<double>(parts), std::vector<double>(parts)};
  for (const Seen& sample : samples) {
    std::vector<double> weights = sample.expected;
    influence.Weigh(weights);
    double all = 0;
    for (size_t i = 0; i < parts; ++i) {
      sums.weights[i] += weights[i];
      sums.squares[i] += weights[i] * weights[i];
      all += weights[i];
    }
    sums.farthest_from_one = std::max(sums.farthest_from_one, std::abs(all - 1));
  }
  return sums;
}

TEST(InfluenceWeightsTest, CertainSamplesWeighOne) {
  const WeightSums sums = SumsOf({{{1, 0}, {1, 0}}, {{0, 1}, {0, 1}}, {{1, 0}, {1, 0}}});
  EXPECT_THAT(sums.weights, Pointwise(DoubleNear(1e-12), {2.0, 1.0}));
  EXPECT_THAT(sums.squares, Pointwise(DoubleNear(1e-12), {2.0, 1.0}));
}

// Expected weights need not be those of the likeliest shares: their sums stay, whatever they are.
TEST(InfluenceWeightsTest, PreservesMarginalSums) {
  std::vector<Seen> samples;
  for (int i = 0; i < 90; ++i) {
    const double a = 0.01 * i;
    samples.push_back({{0.9 - a / 2, 0.1, a / 2}, {0.2, 0.8 - a / 2, a / 2}});
  }
  samples.push_back({{0, 1, 0}, {0, 1, 0}});
  const WeightSums sums = SumsOf(samples);
  EXPECT_LT(sums.farthest_from_one, 1e-9);
  double second = 1;
  double third = 0;
  for (int i = 0; i < 90; ++i) second += 0.8 - 0.005 * i;
  for (int i = 0; i < 90; ++i) third += 0.005 * i;
  EXPECT_THAT(sums.weights, Pointwise(DoubleNear(1e-6), {18.0, second, third}));
}

// Nothing distinguishes two places: of a hundred samples any number may have been in either. What
// is not known is the Dirichlet distribution's n^2 p (1 - p) / 2, and the number of all of them, n
// p^2.
TEST(InfluenceWeightsTest, UninformativeSamplesHaveVarianceOfLengths) {
  const std::vector<Seen> samples(100, {{0.7, 0.3}, {0.7, 0.3}});
  const WeightSums sums = SumsOf(samples);
  EXPECT_LT(sums.farthest_from_one, 1e-9);
  EXPECT_THAT(sums.weights, Pointwise(DoubleNear(1e-6), {70.0, 30.0}));
  EXPECT_NEAR(sums.squares[0], 1050 + 49, 200);  // signs are random: of two parts often the same
  EXPECT_NEAR(sums.squares[1], 1050 + 9, 200);
}

// The likeliest has nothing in a place that lengths hardly tell from another; so much may have been
// there after all.
TEST(InfluenceWeightsTest, ZeroEstimateHasNonzeroVariance) {
  std::vector<Seen> samples;
  for (int i = 0; i < 100; ++i) {
    const double a = i % 2 == 0 ? 0.52 : 0.48;
    samples.push_back({{a, 1 - a}, {1 - 1e-6, 1e-6}});
  }
  const WeightSums sums = SumsOf(samples);
  EXPECT_NEAR(sums.weights[1], 1e-4, 1e-6);
  EXPECT_GT(sums.squares[1], 30 * 30);
  EXPECT_LT(sums.squares[1], 100 * 100);
}

TEST(InfluenceWeightsTest, UnsampledPlaceHasNoInfluence) {
  const std::vector<Seen> samples(10, {{0.5, 0, 0.5}, {0.5, 0, 0.5}});
  const WeightSums sums = SumsOf(samples);
  EXPECT_THAT(sums.weights, Pointwise(DoubleNear(1e-9), {5.0, 0.0, 5.0}));
  EXPECT_EQ(sums.squares[1], 0);
}

}  // namespace
}  // namespace xenoscope::correlate
