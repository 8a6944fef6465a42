#include "trace/events.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace xenoscope::trace {
namespace {

TEST(Events, ClassifiesEveryEventId) {
  for (size_t i = 1; i < kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    const EventInfo& info = Info(event);
    uint32_t variant = info.variants;
    do {
      EXPECT_EQ(Classify(info.id | variant), event) << info.name << std::hex << variant;
      variant = (variant - 1) & info.variants;
    } while (variant != info.variants);
    EXPECT_EQ(ClassOf(info.id), info.trace_class) << info.name;
    EXPECT_EQ(SubclassOf(info.id), info.subclass) << info.name;
    EXPECT_NE(info.subclass, TraceSubclass::kUnknown) << info.name;
    EXPECT_EQ(EventByName(info.name), event);
  }
}

TEST(Events, UnknownIdsAreUnknown) {
  for (const uint32_t id : {0U, 0x1f000U, 0x21000U, 0x21003U, 0x22212U, 0x28012U, 0x81004U,
                            0x8200000U, 0x82028U, 0x03f001U, 0x100f001U, 0x200f001U, 0x400f001U,
                            0x80f001U, 0x8001001U, 0x801f001U, 0xfffffffU}) {
    EXPECT_EQ(Classify(id), Event::kUnknown) << std::hex << id;
  }
  EXPECT_EQ(ClassOf(0x100f001), TraceClass::kUnknown);
  EXPECT_EQ(ClassOf(0x22212), TraceClass::kSched);
}

TEST(Events, VariantBitsDoNotChangeEvent) {
  EXPECT_EQ(Classify(0x21021), Event::kRunstateChange);  // running -> blocked
  EXPECT_EQ(RunstateOld(0x21121), Runstate::kRunnable);
  EXPECT_EQ(RunstateNew(0x21121), Runstate::kBlocked);
  EXPECT_EQ(Classify(0x81102), Event::kHvmVmexit);
  EXPECT_EQ(Classify(0x81502), Event::kHvmVmexit);
  EXPECT_TRUE(IsNested(0x81502) && Is64(0x81502));
  EXPECT_EQ(Classify(0x81103), Event::kHvmSvmExit);
  EXPECT_EQ(Classify(0x40f208), Event::kShadowEmulate);
  EXPECT_EQ(ShadowLevels(0x40f208), 4U);
  EXPECT_EQ(Classify(0x800f000), Event::kGuest);
  EXPECT_EQ(Classify(0x800ffff), Event::kGuest);
  EXPECT_EQ(Classify(0x82216), Event::kHvmIoportWrite);
  EXPECT_EQ(Classify(0x82016), Event::kHvmIoportRead);
}

TEST(Events, WordCountsCoverAllVersions) {
  EXPECT_EQ(Info(Event::kRunstateChange).min_words, 1);
  EXPECT_EQ(Info(Event::kRunstateChange).max_words, 5);
  EXPECT_EQ(Info(Event::kLostRecords).min_words, 4);
  EXPECT_EQ(Info(Event::kLostRecords).max_words, 4);
  EXPECT_EQ(Info(Event::kHvmVmexit).min_words, 2);
  EXPECT_EQ(Info(Event::kHvmVmexit).max_words, 3);
  EXPECT_EQ(Info(Event::kHvmVmentry).max_words, 0);
  EXPECT_EQ(Info(Event::kPvHypercallV2).min_words, 1);
  EXPECT_EQ(Info(Event::kPvHypercallV2).max_words, 7);
  EXPECT_EQ(Info(Event::kGuest).min_words, 0);
  EXPECT_EQ(Info(Event::kGuest).max_words, 7);
}

TEST(Events, NamesAreUnique) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kEventCount; ++i) {
    EXPECT_TRUE(names.insert(Info(static_cast<Event>(i)).name).second);
  }
}

TEST(Events, PackedVcpus) {
  EXPECT_EQ(UnpackVcpu(0x00030001), (VcpuRef{DomainId{3}, VcpuId{1}}));
  EXPECT_EQ(UnpackDomainFirst(0x00010003), (VcpuRef{DomainId{3}, VcpuId{1}}));
}

}  // namespace
}  // namespace xenoscope::trace
