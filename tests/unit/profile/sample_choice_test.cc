// Which samples a profile is of, and whether they count time.
#include "profile/sample_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fake_recording.h"

namespace xenoscope::profile {
namespace {

using ::testing::ElementsAre;
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
  const auto text = [](const recording::EventInfo& event) { return EventText({{event}}, {0}); };
  EXPECT_EQ(text(EventOf("cycles", "hpet:500")), "cycles (clocked by hpet:500)");
  EXPECT_EQ(text(EventOf("cycles", "pmu")), "cycles");
  EXPECT_EQ(text(EventOf("faults", "linux")), "faults");
  EXPECT_EQ(text(EventOf("cycles")), "cycles");
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

TEST(ChooseEventsTest, DefaultIsFirstEventWithSamples) {
  FakeRecording made;
  made.info.events = {EventOf("cycles"), EventOf("faults")};
  made.Sample(100, 110, 0x10, /*event=*/1);
  const auto recording = made.Open();
  EXPECT_THAT(*ChooseEvents(recording, made.info.events, "", {}), ElementsAre(1));
  EXPECT_THAT(*ChooseEvents(recording, made.info.events, "cycles", {}), ElementsAre(0));
}

TEST(ChooseEventsTest, DefaultIsOfRunningVcpusIfAnyIs) {
  FakeRecording made;
  made.info.events = {EventOf("vcpu-preempted"), EventOf("cpu-clock")};
  made.info.events[0].waiting = true;
  made.Sample(100, 110, 0x10, /*event=*/0);
  EXPECT_THAT(*ChooseEvents(made.Open(), made.info.events, "", {}), ElementsAre(0));
  made.Sample(110, 120, 0x10, /*event=*/1);
  EXPECT_THAT(*ChooseEvents(made.Open(), made.info.events, "", {}), ElementsAre(1));
}

recording::EventInfo EventIn(ModeSet modes) {
  recording::EventInfo event = EventOf("cycles");
  event.modes = modes;
  return event;
}

TEST(RestrictionTest, NamesModes) {
  EXPECT_EQ(RestrictionOf({}, EventIn(kAllModes)), "");
  EXPECT_THAT(RestrictionOf({}, EventIn({.kernel = true})), HasSubstr("in kernel mode only"));
  EXPECT_THAT(RestrictionOf({}, EventIn({.user = true, .xen = true})),
              HasSubstr("in user mode and Xen only"));
}

// Recordings before format 1.8 have no modes.
TEST(RestrictionTest, OldEventsAreRestrictedByOtherModes) {
  recording::RecordingInfo info;
  EXPECT_EQ(RestrictionOf(info, EventOf("cycles")), "");
  info.streams.resize(2);
  info.streams[1].source = "xenoprof";
  info.streams[1].other_modes = 7;
  EXPECT_THAT(RestrictionOf(info, EventOf("cycles")), HasSubstr("7 samples of modes"));
  EXPECT_EQ(RestrictionOf(info, EventIn(kAllModes)), "");
  recording::EventInfo of_perf = EventOf("cycles");
  of_perf.source = "perf";
  EXPECT_EQ(RestrictionOf(info, of_perf), "");
}

}  // namespace
}  // namespace xenoscope::profile
