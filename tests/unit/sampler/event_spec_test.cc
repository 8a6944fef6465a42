// -e NAME[:MODES][:PERIOD|@HZ]
#include "sampler/event_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  const char* text;
  const char* name;
  const char* modes;
  uint64_t period;  // 0: none
  uint64_t hz;
};

TEST(EventSpecTest, ParsesNamesModesPeriodsAndRates) {
  for (const auto& [text, name, modes, period, hz] : std::vector<Case>{
           {"cycles", "cycles", "ukh", 0, 0},
           {"cycles:100000", "cycles", "ukh", 100000, 0},
           {"cycles:u:100000", "cycles", "u", 100000, 0},
           {"cycles:uk", "cycles", "uk", 0, 0},
           {"instructions@500", "instructions", "ukh", 0, 500},
           {"instructions:kh@500", "instructions", "kh", 0, 500},
           {"core::l2_lines_in:self:any:5000", "core::l2_lines_in:self:any", "ukh", 5000, 0},
           {"r4f2e:1000", "r4f2e", "ukh", 1000, 0},
       }) {
    const auto spec = ParseEventSpec(text);
    ASSERT_TRUE(spec.ok()) << text << ": " << spec.status();
    EXPECT_EQ(spec->name, name) << text;
    const std::string found = std::string(spec->user ? "u" : "") + (spec->kernel ? "k" : "") +
                              (spec->hypervisor ? "h" : "");
    EXPECT_EQ(found, modes) << text;
    EXPECT_EQ(spec->period.value_or(0), period) << text;
    EXPECT_EQ(spec->hz.value_or(0), hz) << text;
  }
}

TEST(EventSpecTest, ErrorsNameTheMistake) {
  const auto refusal = [](const char* text) {
    return std::string(Message(ParseEventSpec(text).status()));
  };
  EXPECT_THAT(refusal(""), HasSubstr("is not NAME"));
  EXPECT_THAT(refusal(":100000"), HasSubstr("is not NAME"));
  EXPECT_THAT(refusal("cycles:"), HasSubstr("is not NAME"));
  EXPECT_THAT(refusal("cycles@"), HasSubstr("is not NAME"));
  EXPECT_THAT(refusal("cycles@fast"), HasSubstr("is not NAME"));
  EXPECT_THAT(refusal("cycles:0"), HasSubstr("period of 0"));
  EXPECT_THAT(refusal("cycles@0"), HasSubstr("1 to 1000000"));
  EXPECT_THAT(refusal("cycles@1000001"), HasSubstr("1 to 1000000"));
}

TEST(EventSpecTest, RefusesTooLargeNumbers) {
  for (const char* const text : {"cycles:99999999999999999999", "cycles@99999999999999999999"}) {
    const auto spec = ParseEventSpec(text);
    EXPECT_THAT(Message(spec.status()), HasSubstr("99999999999999999999 is too large")) << text;
  }
}

// Returns the texts, those of a group with its number before them.
std::vector<std::string> Split(const std::vector<std::string>& texts) {
  const auto events = SplitEventTexts(texts);
  if (!events.ok()) return {std::string(Message(events.status()))};
  std::vector<std::string> found;
  for (const EventText& event : *events) {
    found.push_back((event.group ? std::to_string(*event.group) + " " : "") + event.text);
  }
  return found;
}

TEST(EventSpecTest, SplitsListsAndGroups) {
  EXPECT_THAT(Split({"cycles"}), ElementsAre("cycles"));
  EXPECT_THAT(Split({"cycles,faults", "r0076"}), ElementsAre("cycles", "faults", "r0076"));
  EXPECT_THAT(Split({"{cycles,instructions}"}), ElementsAre("0 cycles", "0 instructions"));
  EXPECT_THAT(Split({"faults,{a,b}:u@500,c", "{d}"}),
              ElementsAre("faults", "0 a:u@500", "0 b:u@500", "c", "1 d"));
}

TEST(EventSpecTest, RefusesBracesThatDoNotMatch) {
  for (const char* const text : {"{a,b", "a,b}", "{a,{b}}", "{}", "a,,b", ",", "{a,b}}", ""}) {
    EXPECT_THAT(Split({text}), ElementsAre(HasSubstr("are not NAME,NAME"))) << text;
  }
  EXPECT_EQ(ParseEventSpecs(std::vector<std::string>{"{cycles,faults:0}"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EventSpecTest, RawCodesHaveFiveLetters) {
  EXPECT_EQ(RawCode("r4f2e"), 0x4f2e);
  EXPECT_EQ(RawCode("rxyzz"), std::nullopt);
  EXPECT_EQ(RawCode("r4f2"), std::nullopt);
  EXPECT_EQ(RawCode("cycles"), std::nullopt);
}

}  // namespace
}  // namespace xenoscope::sampler
