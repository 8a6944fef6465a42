#include "trace/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xenoscope::trace {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

EventMask Preset(std::string_view name) { return ParseEventMask(name).value_or(EventMask{}); }

std::string Note(std::string_view mask, std::span<const Figure> wanted) {
  return MissingFiguresNote(Preset(mask), mask, wanted);
}

TEST(Figures, AllEventsHaveAllFigures) {
  for (const Figure figure : AllFigures()) {
    EXPECT_TRUE(Has(Preset("all"), figure)) << Info(figure).name;
    EXPECT_EQ(Has(EventMask{}, figure), figure == Figure::kLosses) << Info(figure).name;
  }
  EXPECT_THAT(Note("all", AllFigures()), IsEmpty());
}

TEST(Figures, ProfileHasWhatReportNeeds) {
  EXPECT_THAT(Note("profile", ReportFigures()), IsEmpty());
  EXPECT_THAT(Note("0x084f3000", ReportFigures()), IsEmpty());
}

TEST(Figures, NoteNamesFiguresAndTheCheapestPresetThatHasThem) {
  EXPECT_EQ(
      Note("exits", ReportFigures()),
      "Recorded with --trace-events exits, this trace does not show: what VM exits were about "
      "(CPUID leaves, MSRs, ports, MMIO addresses, hypercalls); work for shadow page tables "
      "(--trace-events profile records them).");
  EXPECT_THAT(Note("sched", ReportFigures()),
              HasSubstr("does not show: VM exits (--trace-events exits records them); what VM"));
}

// `sched` has the wakes too, but not the exits that this trace has.
TEST(Figures, PresetOfNoteKeepsWhatTheTraceHas) {
  const std::string note = Note("profile", AllFigures());
  EXPECT_THAT(note, HasSubstr("wakes, blocks, yields and slices"));
  EXPECT_THAT(note, HasSubstr("--trace-events all records them"));
  EXPECT_THAT(note, Not(HasSubstr("--trace-events sched")));
}

TEST(Figures, ExitsWithoutRunstatesAreOfNoVcpu) {
  EXPECT_FALSE(Has(Preset("hvm"), Figure::kExits));
  EXPECT_TRUE(Has(Preset("hvm,sched"), Figure::kExits));
}

}  // namespace
}  // namespace xenoscope::trace
