#include "correlate/placing/sampling_clock.h"

#include <gtest/gtest.h>

#include <optional>

namespace xenoscope::correlate {
namespace {

constexpr Cycles kInGuest = 1'000'300;  // the period that begins with an NMI in the guest
constexpr Cycles kInXen = 1'000'000;

SamplingClock Even() {
  SamplingClock clock;
  for (Cycles i = 0; i < 200; ++i) clock.LearnPeriod(kInGuest + i % 4 * kInXen, i % 4);
  return clock;
}

TEST(SamplingClock, CountsPeriods) {
  const SamplingClock clock = Even();
  ASSERT_TRUE(clock.IsEven());
  EXPECT_EQ(clock.PeriodsIn(kInGuest), 1U);
  EXPECT_EQ(clock.PeriodsIn(kInGuest + 4 * kInXen), 5U);
  EXPECT_EQ(clock.PeriodsIn(kInGuest + 4 * kInXen + 3000), 5U);
  EXPECT_EQ(clock.PeriodsIn(kInGuest + 4 * kInXen + 9000), std::nullopt);
  EXPECT_EQ(clock.PeriodsIn(kInGuest / 2), std::nullopt);
  EXPECT_EQ(clock.PeriodsIn(kInGuest + 70 * kInXen), std::nullopt);
}

TEST(SamplingClock, DividesWhatDiffersFromWholePeriods) {
  const SamplingClock clock = Even();
  const Cycles length = kInGuest + 4 * kInXen + 50;
  EXPECT_DOUBLE_EQ(clock.InstantIn(length, 5, 0), 0);
  EXPECT_DOUBLE_EQ(clock.InstantIn(length, 5, 1), kInGuest + 10);
  EXPECT_DOUBLE_EQ(clock.InstantIn(length, 5, 3), kInGuest + 2 * kInXen + 30);
  EXPECT_DOUBLE_EQ(clock.InstantIn(length, 5, 5), static_cast<double>(length));
}

TEST(SamplingClock, IsNotEvenWhereLengthsDiffer) {
  SamplingClock none;
  EXPECT_FALSE(none.IsEven());
  EXPECT_EQ(none.PeriodsIn(kInGuest), std::nullopt);
  SamplingClock uneven;
  for (Cycles i = 0; i < 200; ++i) uneven.LearnPeriod(kInGuest + i % 7 * 50'000, 0);
  EXPECT_FALSE(uneven.IsEven());
  // A clock that was even no longer is.
  SamplingClock clock = Even();
  for (Cycles i = 0; i < 200; ++i) clock.LearnPeriod(kInGuest + i % 7 * 50'000, 0);
  EXPECT_FALSE(clock.IsEven());
}

// An exit 5 periods behind one and 3 before another is not where these predict it.
TEST(SamplingClock, ErrorIsThatOfExitsBetweenOthers) {
  SamplingClock clock = Even();
  for (int i = 0; i < 100; ++i) {
    clock.LearnError(kInGuest + 4 * kInXen + 200, 5, kInGuest + 2 * kInXen - 200, 3);
  }
  clock.Update();
  EXPECT_DOUBLE_EQ(clock.error(), 200 + 2.0 * NmiOffsetEstimator::kBin);
  EXPECT_FALSE(clock.offset());  // no sample has shown it
}

}  // namespace
}  // namespace xenoscope::correlate
