// Which samples a profile is of, and whether they count time.
#include "profile/sample_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fake_recording.h"

namespace xenoscope::profile {
namespace {

using ::testing::HasSubstr;

TEST(CountsTimeTest, CyclesAndTimersCountTime) {
  EXPECT_TRUE(CountsTime(EventOf("cpu_clk_unhalted", "pmu")));
  EXPECT_TRUE(CountsTime(EventOf("cycles")));
  EXPECT_TRUE(CountsTime(EventOf("timer", "hpet:500")));
}

TEST(CountsTimeTest, OtherEventsDoNotCountTime) {
  EXPECT_FALSE(CountsTime(EventOf("cache-misses", "pmu")));
  EXPECT_FALSE(CountsTime(EventOf("instructions")));
  // An event of Linux counts faults or switches, whatever its name says.
  EXPECT_FALSE(CountsTime(EventOf("cycles-like-fault", "linux")));
}

TEST(EventTextTest, NamesSubstituteClock) {
  EXPECT_EQ(EventText(EventOf("cycles", "hpet:500")), "cycles (clocked by hpet:500)");
  EXPECT_EQ(EventText(EventOf("cycles", "pmu")), "cycles");
  EXPECT_EQ(EventText(EventOf("faults", "linux")), "faults");
  EXPECT_EQ(EventText(EventOf("cycles")), "cycles");
}

TEST(ChooseTraceSamplesTest, AutoPrefersRecordedSamples) {
  recording::RecordingInfo sampled;
  sampled.sources.emplace_back().name = "xenoprof";
  EXPECT_EQ(*ChooseTraceSamples("auto", sampled, true, "a.xeno"), false);
  EXPECT_EQ(*ChooseTraceSamples("trace", sampled, true, "a.xeno"), true);
  EXPECT_EQ(*ChooseTraceSamples("auto", {}, true, "a.xeno"), true);
}

TEST(ChooseTraceSamplesTest, RefusesSourceWithoutSamples) {
  recording::RecordingInfo sampled;
  sampled.sources.emplace_back().name = "xenoprof";
  const auto no_trace = ChooseTraceSamples("trace", sampled, false, "a.xeno");
  EXPECT_TRUE(absl::IsNotFound(no_trace.status()));
  const auto no_samples = ChooseTraceSamples("recorded", {}, true, "a.xeno");
  EXPECT_TRUE(absl::IsNotFound(no_samples.status()));
  EXPECT_THAT(std::string(Message(no_samples.status())), HasSubstr("a.xeno"));
}

TEST(ChooseEventTest, DefaultIsFirstEventWithSamples) {
  FakeRecording made;
  made.info.events = {EventOf("cycles"), EventOf("faults")};
  made.Sample(100, 110, 0x10, /*event=*/1);
  const auto recording = made.Open();
  EXPECT_EQ(*ChooseEvent(recording, "", {}), 1);
  EXPECT_EQ(*ChooseEvent(recording, "cycles", {}), 0);
}

TEST(ChooseEventTest, UnknownNameErrorListsEvents) {
  FakeRecording made;
  const auto event = ChooseEvent(made.Open(), "instructions", {});
  EXPECT_TRUE(absl::IsNotFound(event.status()));
  EXPECT_THAT(std::string(Message(event.status())), HasSubstr("cycles"));
}

}  // namespace
}  // namespace xenoscope::profile
