// Which events are shown side by side, and with which ratios.
#include "profile/event_comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "fake_recording.h"

namespace xenoscope::profile {
namespace {

using recording::EventInfo;
using recording::RecordingInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EventInfo Counted(const std::string& name, uint64_t period = 1000,
                  const std::string& source = "xenoprof") {
  EventInfo event = EventOf(name, "pmu");
  event.period = period;
  event.source = source;
  event.modes = kAllModes;
  return event;
}

// Returns "KEY NUMERATOR/DENOMINATOR SCALE" of each ratio of all the events.
std::vector<std::string> Ratios(const std::vector<EventInfo>& events) {
  std::vector<EventGroup> groups;
  for (size_t i = 0; i < events.size(); ++i) groups.push_back({static_cast<uint16_t>(i)});
  std::vector<std::string> ratios;
  for (const RatioColumn& column : CompareEvents({}, events, groups).ratios) {
    ratios.push_back(fmt::format("{} {}/{} {}", column.key, column.ratio.numerator,
                                 column.ratio.denominator, column.ratio.scale));
  }
  return ratios;
}

// Returns why the two events have no ratio.
std::vector<std::string> Cautions(const EventInfo& a, const EventInfo& b) {
  const std::vector<EventInfo> events = {a, b};
  const EventComparison comparison = CompareEvents({}, events, {{0}, {1}});
  EXPECT_THAT(comparison.ratios, IsEmpty());
  return comparison.cautions;
}

TEST(CompareEventsTest, KnowsEventsByAllTheirNames) {
  for (const auto& [cycles, instructions] : std::vector<std::pair<const char*, const char*>>{
           {"cycles", "instructions"},
           {"cpu_clk_unhalted", "amd64_fam15h_interlagos::retired_instructions"},
           {"CPU_CLK_UNHALTED", "RETIRED_INSTRUCTIONS"},
           {"unhalted_core_cycles", "skl::inst_retired:any_p"},
           {"r0076", "r00c0"},
       }) {
    EXPECT_THAT(Ratios({Counted(cycles), Counted(instructions)}), ElementsAre("ipc 1/0 1"));
  }
}

TEST(CompareEventsTest, SamplesStandForTheirPeriods) {
  EXPECT_THAT(Ratios({Counted("cycles", 1000), Counted("instructions", 3000)}),
              ElementsAre("ipc 1/0 3"));
  EXPECT_THAT(Ratios({Counted("data_cache_misses", 10), Counted("instructions", 1000)}),
              ElementsAre("data_cache_misses_pti 0/1 10"));
}

TEST(CompareEventsTest, HasMissRatesAndCountsPerThousandInstructions) {
  EXPECT_THAT(
      Ratios({Counted("branches"), Counted("branch-misses"), Counted("instructions")}),
      ElementsAre("branches_pti 0/2 1000", "branch_miss_rate 1/0 1", "branch_misses_pti 1/2 1000"));
  EXPECT_THAT(Ratios({Counted("cycles"), Counted("cache-misses")}), IsEmpty());
  EventInfo faults = Counted("page-faults");
  faults.clocked_by = "linux";
  EXPECT_THAT(Ratios({faults, Counted("instructions")}), IsEmpty());
  EXPECT_THAT(Cautions(faults, Counted("instructions")), IsEmpty());
}

TEST(CompareEventsTest, CautionsSayWhyThereIsNoRatio) {
  EventInfo kernel = Counted("instructions");
  kernel.modes = ModeSet{.kernel = true};
  EXPECT_THAT(
      Cautions(Counted("cycles"), kernel),
      ElementsAre("There is no ratio of instructions:k to cycles, because they were counted in "
                  "different modes."));
  EXPECT_THAT(Cautions(Counted("cycles"), Counted("instructions", 1000, "perf")),
              ElementsAre(HasSubstr("different sources")));
  EXPECT_THAT(Cautions(Counted("cycles"), Counted("instructions", 0)),
              ElementsAre(HasSubstr("periods are not known")));
  EventInfo clocked = Counted("cpu_clk_unhalted");
  clocked.clocked_by = "hpet:500";
  EXPECT_THAT(Cautions(clocked, Counted("instructions")), ElementsAre(HasSubstr("a timer")));
}

TEST(CompareEventsTest, GuestsWithDifferentPeriodsHaveNoRatio) {
  const std::vector<EventInfo> events = {
      Counted("cycles", 1000, "agent-1"), Counted("cycles", 2000, "agent-2"),
      Counted("instructions", 1000, "agent-1"), Counted("instructions", 1000, "agent-2")};
  EXPECT_THAT(CompareEvents({}, events, {{0, 1}, {2, 3}}).ratios, IsEmpty());
  EXPECT_EQ(CompareEvents({}, events, {{0}, {2}}).ratios.size(), 1U);
}

TEST(CompareEventsTest, IsCompleteIfNothingWasLostOrLeftOut) {
  const std::vector<EventInfo> events = {Counted("cycles"), Counted("instructions")};
  RecordingInfo info;
  info.domains.emplace_back().role = recording::Role::kInitiator;
  info.streams.emplace_back().source = "xenoprof";
  EXPECT_TRUE(CompareEvents(info, events, {{0}, {1}}).complete);
  info.streams.back().logged.lost = 1;
  EXPECT_FALSE(CompareEvents(info, events, {{0}, {1}}).complete);
  info.streams.back().logged.lost = 0;
  info.domains.emplace_back().role = recording::Role::kNone;
  EXPECT_FALSE(CompareEvents(info, events, {{0}, {1}}).complete);
}

TEST(GroupsComparableWithTest, AddsEventsThatHaveARatio) {
  const std::vector<EventInfo> events = {Counted("cycles"), Counted("cache-misses"),
                                         Counted("instructions"), Counted("cycles", 1000, "perf")};
  EXPECT_THAT(GroupsComparableWith({}, events, {0}),
              ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1)));
  EXPECT_THAT(GroupsComparableWith({}, events, {3}), ElementsAre(ElementsAre(3)));
}

TEST(FindEventGroupsTest, ReadsBraces) {
  const std::vector<EventInfo> events = {Counted("cycles"), Counted("instructions")};
  EXPECT_THAT(*FindEventGroups(events, "{instructions,cycles}"),
              ElementsAre(ElementsAre(1), ElementsAre(0)));
  EXPECT_THAT(*FindEventGroups(events, "cycles"), ElementsAre(ElementsAre(0)));
  const auto error = [&events](const char* text) {
    return std::string(Message(FindEventGroups(events, text).status()));
  };
  EXPECT_THAT(error("{cycles"), HasSubstr("braces do not match"));
  EXPECT_THAT(error("{cycles,cycles}"), HasSubstr("named twice"));
  EXPECT_THAT(error("{cycles,}"), HasSubstr("no event ''"));
}

}  // namespace
}  // namespace xenoscope::profile
