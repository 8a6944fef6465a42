#include "correlate/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

// Values with the level `before` up to `at`, and `after` from there on.
std::vector<double> Step(size_t count, size_t at, double before, double after, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 1);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back((i < at ? before : after) + noise(random));
  return values;
}

TEST(ChangePoints, FindsStep) {
  const std::vector<ChangePoint> changes = FindChangePoints(Step(40, 25, 10, 16, 1), 0.05);
  ASSERT_THAT(changes, ElementsAre(Field(&ChangePoint::at, 25)));
  EXPECT_THAT(changes[0].before, DoubleNear(10, 1));
  EXPECT_THAT(changes[0].after, DoubleNear(16, 1));
  EXPECT_LE(changes[0].p, 0.05);
}

TEST(ChangePoints, FindsEachOfSeveralSteps) {
  std::vector<double> values = Step(30, 15, 0, 10, 2);
  for (const double value : Step(15, 15, -5, 0, 3)) values.push_back(value);
  EXPECT_THAT(FindChangePoints(values, 0.01),
              ElementsAre(Field(&ChangePoint::at, 15), Field(&ChangePoint::at, 30)));
}

TEST(ChangePoints, FindsNoneInTooFewValues) {
  // Of three values, every order is as likely as this one: p is at least 1/3.
  EXPECT_THAT(FindChangePoints(std::vector<double>{1, 1, 100}, 0.05), IsEmpty());
  EXPECT_THAT(FindChangePoints(std::vector<double>{1}, 0.05), IsEmpty());
  EXPECT_THAT(FindChangePoints({}, 0.05), IsEmpty());
}

TEST(ChangePoints, FindsNoneInEqualValues) {
  EXPECT_THAT(FindChangePoints(std::vector<double>(50, 0.1), 0.05), IsEmpty());
}

TEST(ChangePoints, RaisesFalseAlarmsAtMostAtItsLevel) {
  // Values with outliers, as shares of a busy host have: no normal distribution.
  constexpr int kSeries = 1000;
  int alarms = 0;
  for (int seed = 0; seed < kSeries; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    std::lognormal_distribution<double> value(0, 1.5);
    std::vector<double> values(24);
    for (double& each : values) each = value(random);
    alarms += FindChangePoints(values, 0.05).empty() ? 0 : 1;
  }
  // 50 are expected; 50 + 3 sqrt(1000 x 0.05 x 0.95) is 70.
  EXPECT_LE(alarms, 70);
  EXPECT_GE(alarms, 20) << "the test has power only if some chance remains";
}

TEST(ChangePoints, SeesStepsOfTwiceTheNoise) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    found += FindChangePoints(Step(24, 12, 0, 2, seed), 0.05).empty() ? 0 : 1;
  }
  EXPECT_GE(found, 190);
}

}  // namespace
}  // namespace xenoscope::correlate
