// Names of events, whatever the processor of this machine.
#include "sampler/pmu_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kHz = 2'000'000'000;

absl::StatusOr<PmuEvent> Resolve(std::string_view text,
                                 std::string_view cpu_type = "x86-64/family15h") {
  const auto spec = ParseEventSpec(text);
  if (!spec.ok()) return spec.status();
  return ResolvePmuEvent(*spec, cpu_type, kHz);
}

TEST(PmuEventsTest, EncodesFullNamesOnEveryMachine) {
  const auto event = Resolve("amd64_fam15h_interlagos::cpu_clk_unhalted:100000");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->code, 0x76);
  EXPECT_EQ(event->unit_mask, 0);
  EXPECT_EQ(event->period, 100000);
  EXPECT_EQ(event->name, "amd64_fam15h_interlagos::cpu_clk_unhalted");
}

TEST(PmuEventsTest, UnitMasksAgreeWithLibpfm4) {
  const auto event = Resolve("core::l2_lines_in:self:any:5000");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->code, 0x24);
  EXPECT_NE(event->unit_mask, 0);
}

TEST(PmuEventsTest, RawCodesHaveUnitMaskThenEvent) {
  const auto event = Resolve("r4f2e:1000");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->code, 0x2e);
  EXPECT_EQ(event->unit_mask, 0x4f);
}

TEST(PmuEventsTest, CyclesTakeARate) {
  EXPECT_EQ(Resolve("cycles")->code, 0x76);
  EXPECT_EQ(Resolve("cycles")->period, kHz / 1013);
  EXPECT_EQ(Resolve("cycles@500")->period, kHz / 500);
  EXPECT_EQ(Resolve("cycles:100000", "i386/arch_perfmon")->code, 0x3c);
}

TEST(PmuEventsTest, InstructionsAreOfEveryProcessor) {
  for (const char* const cpu : {"x86-64/family15h", "i386/arch_perfmon"}) {
    const auto event = Resolve("instructions", cpu);
    ASSERT_TRUE(event.ok()) << event.status();
    EXPECT_EQ(event->code, 0xc0);
    EXPECT_EQ(event->period, DefaultEvent(cpu, kHz).period);
  }
  EXPECT_EQ(Resolve("instructions:5000")->period, 5000);
  EXPECT_FALSE(Resolve("instructions@500").ok());
}

TEST(PmuEventsTest, KeepsModes) {
  const auto event = Resolve("cycles:kh:100000");
  EXPECT_FALSE(event->user);
  EXPECT_TRUE(event->kernel);
  EXPECT_TRUE(event->hypervisor);
}

std::string Refusal(std::string_view text) { return std::string(Message(Resolve(text).status())); }

TEST(PmuEventsTest, ErrorsNameTheMistake) {
  EXPECT_THAT(Refusal("r4f2e"), HasSubstr("needs a period"));
  EXPECT_THAT(Refusal("r4f2e@500"), HasSubstr("needs a period"));
  EXPECT_THAT(Refusal("r0076:10"), HasSubstr("500 to 2147483647"));
  EXPECT_THAT(Refusal("r0076:2147483648"), HasSubstr("500 to 2147483647"));
  EXPECT_THAT(Refusal("core::moon_phase:1000"), HasSubstr("xenoscope events"));
}

TEST(PmuEventsTest, SuggestsNearestName) {
  EXPECT_THAT(Refusal("core::l2_lines_im:1000"), HasSubstr("did you mean l2_lines_in?"));
  EXPECT_THAT(Refusal("core::L2_Lines_im:self:1000"), HasSubstr("did you mean l2_lines_in?"));
  EXPECT_THAT(Refusal("core::moon_phase:1000"), testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(Refusal("moon::l2_lines_in:1000"), testing::Not(HasSubstr("did you mean")));
}

TEST(PmuEventsTest, RefusesCodesThatXenoprofMisprograms) {
  EXPECT_THAT(Refusal("amd64_fam15h_interlagos::dispatched_fpu:100000"), testing::Not(""));
}

TEST(PmuEventsTest, FindsTickInStepWithPeriod) {
  EXPECT_EQ(TickRateInStep(2'000'000, 1'000'000'000), 100);   // five periods of 2 ms
  EXPECT_EQ(TickRateInStep(4'000'000, 1'000'000'000), 250);   // 4 ms
  EXPECT_EQ(TickRateInStep(20'000'000, 1'000'000'000), 100);  // two ticks of 10 ms
  EXPECT_EQ(TickRateInStep(10'000'001, 1'000'000'000), 100);  // drifts by a cycle for each tick
  EXPECT_EQ(TickRateInStep(1'990'001, 1'000'000'000), 0);     // drifts by 20,000 cycles in 4 ms
  for (const uint64_t hz : {1'000'000'000UL, 2'300'000'000UL, 2'600'000'000UL, 3'000'000'001UL}) {
    EXPECT_EQ(TickRateInStep(DefaultEvent("x86-64/family15h", hz).period, hz), 0) << hz;
  }
}

TEST(PmuEventsTest, DefaultIsCyclesAt1013Hz) {
  EXPECT_EQ(DefaultEvent("x86-64/family15h", 2'300'000'000).code, 0x76);
  EXPECT_EQ(DefaultEvent("x86-64/family15h", 2'300'000'000).period, 2'270'483);
  EXPECT_EQ(DefaultEvent("i386/arch_perfmon", 3'000'000'000).code, 0x3c);
  EXPECT_EQ(DefaultEvent("x86-64/hammer", 0).period, kMinPeriod);
}

TEST(PmuEventsTest, SearchIgnoresCase) {
  const auto events = ListEvents("Cycles");
  ASSERT_TRUE(events.ok());
  EXPECT_FALSE(events->empty());
  for (const auto& event : *events) EXPECT_TRUE(ContainsWord(event.name, event.text, "cYCLES"));
  EXPECT_TRUE(ContainsWord("x", "Unhalted Cycles", "cycles"));
  EXPECT_FALSE(ContainsWord("x", "y", "cycles"));
}

}  // namespace
}  // namespace xenoscope::sampler
