// Which part of lost time a vCPU runs, by its samples.
#include "correlate/placing/lost_time_part.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/mode.h"

namespace xenoscope::correlate {
namespace {

constexpr Cycles kPeriod = 1000;  // cycles a sample
constexpr int kSamples = 1000;    // of each vCPU, in known time
constexpr Cycles kKnown = kSamples * kPeriod;

// Two vCPUs with the same known time. A third of the pCPU's time is lost.
class LostTimeParts : public testing::Test {
 protected:
  void SetUp() override {
    rate_.AddLost(kKnown);
    for (LostTimePart* vcpu : {&first_, &second_}) vcpu->AddRunning(kKnown, rate_);
  }
  void AddSamples(LostTimePart& vcpu, int samples, double in_lost, Mode mode = Mode::kKernel) {
    for (int i = 0; i < samples; ++i) vcpu.AddSample(mode, in_lost, rate_);
  }

  SampleRate rate_;
  LostTimePart first_;
  LostTimePart second_;
};

TEST_F(LostTimeParts, FewSamplesSayNothing) {
  AddSamples(first_, 99, 0);
  EXPECT_EQ(first_.Running(0.5, rate_), 0.5);
}

TEST_F(LostTimeParts, IsThatOfKnownTimeWhereSamplesAgreeWithIt) {
  // Half of lost time is that of each, and its samples are placed there.
  AddSamples(first_, kSamples + kSamples / 2, 1.0 / 3);
  AddSamples(second_, kSamples + kSamples / 2, 1.0 / 3);
  EXPECT_DOUBLE_EQ(rate_.PerCycle(), 1.0 / kPeriod);
  EXPECT_NEAR(first_.Running(0.5, rate_), 0.5, 1e-6);
  EXPECT_NEAR(second_.Running(0.5, rate_), 0.5, 1e-6);
}

TEST_F(LostTimeParts, FollowsTheSamplesBeyondThoseOfKnownTime) {
  // All of lost time is the first one's, and the samples of both were placed there alike.
  AddSamples(first_, 2 * kSamples, 0.25);
  AddSamples(second_, kSamples, 0.5);
  // 500 samples more than were placed are beyond known time: 11 standard errors, of which 3 count.
  EXPECT_EQ(first_.Running(0.5, rate_), 1);
  EXPECT_NEAR(second_.Running(0.5, rate_), 0.5 * std::exp(-3), 1e-6);
}

TEST_F(LostTimeParts, OnlyVcpusWithSamplesCountForTheRate) {
  AddSamples(first_, kSamples + kSamples / 2, 1.0 / 3);
  EXPECT_DOUBLE_EQ(rate_.PerCycle(), 1.0 / kPeriod);
  EXPECT_EQ(LostTimePart().Running(0.5, rate_), 0.5);
}

TEST_F(LostTimeParts, PartInXenIsThatOfTheSamples) {
  AddSamples(first_, 300, 0, Mode::kXen);
  AddSamples(first_, 700, 0, Mode::kUser);
  EXPECT_NEAR(first_.InXen(0.9), 0.3, 0.01);
  EXPECT_EQ(second_.InXen(0.9), 0.9);
}

}  // namespace
}  // namespace xenoscope::correlate
