// Which events of a recording a text selects, and which text selects an event.
#include "profile/event_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fake_recording.h"
#include "profile/recorded_samples.h"

namespace xenoscope::profile {
namespace {

using recording::EventInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ModeSet kKernelOnly{.kernel = true};

EventInfo EventBy(const std::string& name, const std::string& source, ModeSet modes = kAllModes) {
  EventInfo event = EventOf(name);
  event.source = source;
  event.modes = modes;
  return event;
}

// Returns the message of a text that selects no group.
std::string ErrorOf(const std::vector<EventInfo>& events, std::string_view text) {
  return std::string(Message(FindEvents(events, text).status()));
}

TEST(FindEventsTest, AcceptsUnambiguousName) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf"), EventBy("faults", "perf")};
  EXPECT_THAT(*FindEvents(events, "faults"), ElementsAre(1));
  EXPECT_EQ(EventSpelling(events, {1}), "faults");
  EXPECT_THAT(*FindEvents(events, "faults@perf"), ElementsAre(1));
  EXPECT_THAT(*FindEvents(events, "faults:ukh"), ElementsAre(1));
  EXPECT_THAT(ErrorOf(events, "faults:k"), HasSubstr("it has cycles, faults"));
  EXPECT_THAT(ErrorOf(events, "faults@vcpu"), HasSubstr("it has cycles, faults"));
  EXPECT_TRUE(absl::IsNotFound(FindEvents(events, "").status()));
}

TEST(FindEventsTest, AmbiguousNameErrorListsTexts) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf"), EventBy("cycles", "agent-3"),
                                         EventBy("faults", "perf")};
  EXPECT_EQ(ErrorOf(events, "cycles"),
            "event 'cycles' is ambiguous: give cycles@agent-3 or cycles@perf");
  EXPECT_THAT(*FindEvents(events, "cycles@perf"), ElementsAre(0));
  EXPECT_THAT(*FindEvents(events, "cycles@agent-3"), ElementsAre(1));
  EXPECT_THAT(*FindEvents(events, "cycles@agent"), ElementsAre(1));
  EXPECT_EQ(EventSpelling(events, {1}), "cycles@agent-3");
}

TEST(FindEventsTest, DistinguishesModes) {
  const std::vector<EventInfo> events = {EventBy("a:b", "xenoprof"),
                                         EventBy("a:b", "xenoprof", kKernelOnly),
                                         EventBy("a:b", "xenoprof", {true, true, false})};
  EXPECT_EQ(ErrorOf(events, "a:b"), "event 'a:b' is ambiguous: give a:b:k or a:b:uk or a:b:ukh");
  EXPECT_THAT(*FindEvents(events, "a:b:hku"), ElementsAre(0));
  EXPECT_THAT(*FindEvents(events, "a:b:k"), ElementsAre(1));
  EXPECT_THAT(*FindEvents(events, "a:b:uk@xenoprof"), ElementsAre(2));
}

TEST(FindEventsTest, TextHasRestrictedModes) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf", kKernelOnly)};
  EXPECT_EQ(EventSpelling(events, {0}), "cycles:k");
  EXPECT_THAT(*FindEvents(events, "cycles"), ElementsAre(0));
}

TEST(FindEventsTest, GroupsEventsOfAgents) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf"), EventBy("cycles", "agent-3"),
                                         EventBy("cycles", "agent-4"),
                                         EventBy("cpu-clock", "agent-5")};
  EXPECT_EQ(ErrorOf(events, "cycles"),
            "event 'cycles' is ambiguous: give cycles@agent or cycles@perf; one guest alone is "
            "cycles@agent-3");
  EXPECT_THAT(*FindEvents(events, "cycles@agent"), ElementsAre(1, 2));
  EXPECT_THAT(*FindEvents(events, "cycles@agent-4"), ElementsAre(2));
  EXPECT_EQ(EventSpelling(events, {1, 2}), "cycles@agent");
  const std::vector<EventInfo> guests(events.begin() + 1, events.end());
  EXPECT_THAT(*FindEvents(guests, "cycles"), ElementsAre(0, 1));
  EXPECT_EQ(EventSpelling(guests, {0, 1}), "cycles");
  EXPECT_THAT(GroupOf(guests, 1), ElementsAre(0, 1));
}

TEST(OtherEventsTest, NamesWhatIsNotShown) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf"), EventBy("cycles", "agent-3"),
                                         EventBy("cycles", "agent-4"),
                                         EventBy("cpu-clock", "agent-5")};
  using Groups = std::vector<EventGroup>;
  EXPECT_THAT(OtherEvents(events, Groups{{0}}), ElementsAre("cpu-clock", "cycles@agent"));
  EXPECT_THAT(OtherEvents(events, Groups{{1, 2}, {3}}), ElementsAre("cycles@perf"));
  EXPECT_THAT(OtherEvents(events, Groups{{0}, {1, 2}, {3}}), testing::IsEmpty());
}

TEST(FindEventsTest, NumbersEqualEvents) {
  const std::vector<EventInfo> events = {EventBy("cycles", "perf"), EventBy("cycles", "perf")};
  EXPECT_EQ(ErrorOf(events, "cycles"), "event 'cycles' is ambiguous: give cycles#1 or cycles#2");
  EXPECT_THAT(*FindEvents(events, "cycles#2"), ElementsAre(1));
  EXPECT_THAT(*FindEvents(events, "cycles@perf#1"), ElementsAre(0));
}

TEST(ReadEventsTest, RefusesMoreEventsThanFormatAllows) {
  FakeRecording made;
  made.info.events.resize(recording::kMaxRecordingEvents + 1, EventOf("cycles"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadEvents(made.Open()).status()));
}

TEST(RecordedSamplesTest, TakesNoEventBeyondFormat) {
  FakeRecording made;
  made.info.events.resize(recording::kMaxRecordingEvents + 1, EventOf("cycles"));
  made.Sample(100, 110, 0x10, /*event=*/1);
  const auto recording = made.Open();
  auto samples = RecordedSamples::Open(recording, {.events = {256}}, nullptr);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->Next(), nullptr);
}

TEST(ReadEventsTest, OldRecordingsShowSourcesBySamples) {
  FakeRecording made;
  made.info.events = {EventOf("cycles"), EventOf("cycles")};
  made.Sample(100, 110, 0x10, /*event=*/1);
  const auto events = ReadEvents(made.Open());
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ((*events)[0].source, "");
  EXPECT_EQ((*events)[1].source, "perf");
  EXPECT_THAT(*FindEvents(*events, "cycles@perf"), ElementsAre(1));
}

}  // namespace
}  // namespace xenoscope::profile
