#include "trace/guest_mark_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xenoscope::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr VcpuRef kD1V0{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD1V1{DomainId{1}, VcpuId{1}};
constexpr VcpuRef kD2V0{DomainId{2}, VcpuId{0}};

// Keeps the texts of whole marks, with "..." behind those that are not complete.
class Marks {
 public:
  void Add(VcpuRef vcpu, uint16_t number, uint8_t part, std::string_view text, bool continues) {
    texts_.Add(vcpu, Tsc{now_++},
               {.number = number, .part = part, .continues = continues, .text = text});
  }
  void Finish() { texts_.Finish(); }
  std::vector<std::string> found;
  std::vector<WholeGuestMark> marks;

 private:
  GuestMarkTexts texts_{[this](const WholeGuestMark& mark) {
    found.push_back(mark.text + (mark.complete ? "" : "..."));
    marks.push_back(mark);
  }};
  uint64_t now_ = 100;
};

TEST(GuestMarkTexts, OneRecordIsAMark) {
  Marks marks;
  marks.Add(kD1V0, 7, 0, "short", false);
  EXPECT_THAT(marks.found, ElementsAre("short"));
}

TEST(GuestMarkTexts, PartsAreJoinedAtTheTimeOfTheFirst) {
  Marks marks;
  marks.Add(kD1V0, 7, 0, "a text of ", true);
  marks.Add(kD1V1, 7, 1, "two parts", false);
  EXPECT_THAT(marks.found, ElementsAre("a text of two parts"));
  EXPECT_EQ(marks.marks[0].at, Tsc{100});
  EXPECT_EQ(marks.marks[0].vcpu, kD1V0);
}

TEST(GuestMarkTexts, MarksAtOnceAreToldApart) {
  Marks marks;
  marks.Add(kD1V0, 7, 0, "first ", true);
  marks.Add(kD1V1, 8, 0, "second ", true);
  marks.Add(kD2V0, 7, 0, "third ", true);
  marks.Add(kD1V1, 8, 1, "b", false);
  marks.Add(kD2V0, 7, 1, "c", false);
  marks.Add(kD1V0, 7, 1, "a", false);
  EXPECT_THAT(marks.found, ElementsAre("second b", "third c", "first a"));
}

TEST(GuestMarkTexts, LostPartsAreSaid) {
  Marks marks;
  marks.Add(kD1V0, 7, 0, "no end", true);
  marks.Add(kD1V0, 7, 0, "whole", false);
  marks.Add(kD1V0, 8, 1, "no begin", false);
  marks.Add(kD1V0, 9, 0, "no ", true);
  marks.Add(kD1V0, 9, 2, "middle", false);
  marks.Add(kD1V0, 10, 0, "cut off", true);
  EXPECT_THAT(marks.found, ElementsAre("no end...", "whole", "no begin...", "no ...", "middle..."));
  marks.Finish();
  EXPECT_EQ(marks.found.back(), "cut off...");
}

TEST(GuestMarkTexts, OpenMarksAreBounded) {
  Marks marks;
  for (uint16_t number = 0; number < GuestMarkTexts::kMaxOpen; ++number) {
    marks.Add(kD1V0, number, 0, "open", true);
  }
  EXPECT_THAT(marks.found, IsEmpty());
  marks.Add(kD2V0, 0, 0, "one more", true);
  EXPECT_THAT(marks.found, ElementsAre("open..."));
  EXPECT_EQ(marks.marks[0].at, Tsc{100}) << "the oldest";
}

}  // namespace
}  // namespace xenoscope::trace
