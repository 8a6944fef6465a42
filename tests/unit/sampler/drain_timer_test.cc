#include "sampler/drain_timer.h"

#include <gtest/gtest.h>

#include <chrono>

namespace xenoscope::sampler {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Makes drains that take `cost` each and find what has come at `rate` (buffers a second).
class DrainTimerTest : public testing::Test {
 protected:
  void Drain(double rate, nanoseconds cost) {
    const auto begin = pace_.due();
    const double since = std::chrono::duration<double>(begin - last_).count();
    fill_ = std::min(rate * since, 1.0);
    pace_.Drained(begin, begin + cost, fill_);
    last_ = begin;
    pause_ = pace_.due() - (begin + cost);
  }
  void DrainTimes(int times, double rate, nanoseconds cost) {
    for (int i = 0; i < times; ++i) Drain(rate, cost);
  }

  DrainTimer pace_{milliseconds(5)};
  DrainTimer::Clock::time_point last_;
  double fill_ = 0;
  nanoseconds pause_{0};

  void SetUp() override { pace_.Start(last_); }
};

TEST_F(DrainTimerTest, GrowsToTheRequestedInterval) {
  EXPECT_EQ(pace_.due(), last_ + milliseconds(1));
  Drain(1.0, microseconds(20));
  EXPECT_LT(pause_, milliseconds(2));
  DrainTimes(100, 1.0, microseconds(20));
  EXPECT_EQ(pause_, milliseconds(5));
}

TEST_F(DrainTimerTest, KeepsBuffersAQuarterFull) {
  DrainTimes(100, 100.0, microseconds(20));  // full in 10 ms
  EXPECT_LE(fill_, 0.26);
  EXPECT_GE(fill_, 0.2);
}

// The interval asked for is 5 ms, and a buffer is full in 2 ms.
TEST_F(DrainTimerTest, PreventsOverflowFromTheStart) {
  for (int i = 0; i < 1000; ++i) {
    Drain(500.0, microseconds(20));
    ASSERT_LT(fill_, 0.6) << i;
  }
}

TEST_F(DrainTimerTest, ShortensAtABurstAndRecoversSlowly) {
  DrainTimes(10, 1.0, microseconds(20));
  Drain(500.0, microseconds(20));  // full in 2 ms: overrun
  EXPECT_LT(pause_, microseconds(1300));
  const nanoseconds after_burst = pause_;
  Drain(1.0, microseconds(20));
  EXPECT_LE(pause_, after_burst * 2);
  DrainTimes(100, 1.0, microseconds(20));
  EXPECT_EQ(pause_, milliseconds(5));
}

TEST_F(DrainTimerTest, SpendsAtMostAQuarterOfTheTime) {
  DrainTimes(100, 1.0, milliseconds(10));
  EXPECT_NEAR(std::chrono::duration<double>(pause_).count(), 0.030, 0.001);
}

TEST_F(DrainTimerTest, PrefersSamplesToTime) {
  DrainTimes(100, 100.0, milliseconds(10));  // full in 10 ms, and as long to drain
  EXPECT_EQ(pause_, microseconds(200));
}

}  // namespace
}  // namespace xenoscope::sampler
