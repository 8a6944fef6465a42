#include "correlate/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "correlate/multiple_comparisons.h"

namespace xenoscope::correlate {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(BenjaminiHochberg, AgreesWithPublishedValues) {
  // p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "BH") of R, and one out of order.
  EXPECT_THAT(BenjaminiHochberg({0.01, 0.02, 0.03, 0.04, 0.05}),
              ElementsAre(DoubleNear(0.05, 1e-12), DoubleNear(0.05, 1e-12), DoubleNear(0.05, 1e-12),
                          DoubleNear(0.05, 1e-12), DoubleNear(0.05, 1e-12)));
  EXPECT_THAT(
      BenjaminiHochberg({0.9, 0.001, 0.04}),
      ElementsAre(DoubleNear(0.9, 1e-12), DoubleNear(0.003, 1e-12), DoubleNear(0.06, 1e-12)));
  EXPECT_THAT(BenjaminiHochberg({}), ElementsAre());
}

TEST(Compare, ReportsDifferenceIntervalAndPValue) {
  // Standard errors of 0.03 and 0.04: 0.05 together, of which the difference is two.
  const std::vector<EstimatePair> pairs = {{{0.2, 0.0009}, {0.3, 0.0016}}};
  const std::vector<Difference> differences = Compare(pairs);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_NEAR(differences[0].value, 0.1, 1e-12);
  EXPECT_NEAR(differences[0].low, 0.1 - 1.96 * 0.05, 1e-4);
  EXPECT_NEAR(differences[0].high, 0.1 + 1.96 * 0.05, 1e-4);
  EXPECT_NEAR(differences[0].p, 0.0455, 1e-4);  // beyond two standard errors, either side
}

TEST(Compare, ExactValuesHavePValueZeroOrOne) {
  const std::vector<EstimatePair> pairs = {{{0.2, 0}, {0.2, 0}}, {{0.2, 0}, {0.3, 0}}};
  const std::vector<Difference> differences = Compare(pairs);
  EXPECT_EQ(differences[0].p, 1);
  EXPECT_EQ(differences[1].p, 0);
  EXPECT_EQ(differences[1].low, differences[1].high);
}

// Many rows that do not differ: hardly ever is one of them called different.
TEST(Compare, ControlsFalsePositives) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> error(0, 0.01);
  int alarms = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<EstimatePair> pairs(200);
    for (EstimatePair& pair : pairs)
      pair = {{0.1 + error(random), 1e-4}, {0.1 + error(random), 1e-4}};
    for (const Difference& difference : Compare(pairs)) {
      if (difference.p >= 0.05) continue;
      ++alarms;
      break;
    }
  }
  EXPECT_LT(alarms, kTrials / 10);
}

TEST(ChanceOfAbove, IsOneSided) {
  // Two standard errors above the level, and two below: pnorm(2, lower.tail = FALSE) of R, twice.
  const std::vector<Estimated> values = {{0.24, 0.0004}, {0.16, 0.0004}};
  const std::vector<double> p = ChanceOfAbove(values, 0.2);
  EXPECT_NEAR(p[0], 2 * 0.0227501, 1e-6);
  EXPECT_NEAR(p[1], 0.9772499, 1e-6);
}

TEST(ChanceOfAbove, ExactValuesAreAboveOrNot) {
  const std::vector<Estimated> values = {{0.1, 0}, {0.2, 0}, {0.3, 0}};
  EXPECT_THAT(ChanceOfAbove(values, 0.2), ElementsAre(1, 1, 0));
}

// Shares that are at the level, of few samples or many: at most the stated part of questions has
// an alarm. Rows far below the level make alarms no likelier, however many they are.
TEST(ChanceOfAbove, KeepsTheRateOfFalseAlarms) {
  const struct {
    double level;
    int samples;
    int at_level;
    int below;
  } kCases[] = {{0.3, 1000, 3, 0}, {0.02, 50, 1, 0}, {0.002, 200, 20, 0}, {0.05, 2000, 5, 300}};
  std::mt19937_64 random(11);
  constexpr int kTrials = 2000;
  for (const auto& each : kCases) {
    std::binomial_distribution<int> count(each.samples, each.level);
    int alarms = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<Estimated> rows(each.below, Estimated{each.level / 100, 1e-8});
      for (int i = 0; i < each.at_level; ++i) {
        const double n = each.samples;
        const double x = count(random);
        const ClusterTotals all{n, n, static_cast<uint64_t>(each.samples)};
        rows.push_back({x / n, IndependentVariance({x, x, x}, all)});
      }
      const std::vector<double> p = ChanceOfAbove(rows, each.level);
      alarms += static_cast<int>(*std::ranges::min_element(p) < 0.05);
    }
    // Three standard errors of 5 % in this many trials.
    EXPECT_LE(alarms, kTrials * 0.05 + 3 * std::sqrt(kTrials * 0.05 * 0.95)) << each.level;
  }
}

TEST(UnseenShare, HasVarianceAfterFewSamples) {
  EXPECT_EQ(UnseenShare(100).value, 0);
  EXPECT_GT(UnseenShare(10).variance, UnseenShare(1000).variance);
  EXPECT_GT(UnseenShare(1e6).variance, 0);
}

}  // namespace
}  // namespace xenoscope::correlate
