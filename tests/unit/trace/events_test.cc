#include "trace/events.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "tests/unit/trace/record_ids.h"
#include "tests/unit/trace/trace_builder.h"

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
  constexpr uint32_t kCsched2Unused = 0x22212;  // between two events of Credit2
  constexpr uint32_t kUnknownClass = 0x100f001;
  for (const uint32_t id :
       {0U, 0x1f000U, 0x21000U, 0x21003U, kCsched2Unused, 0x28012U, 0x81004U, 0x82028U, 0x80f001U,
        0x8001001U, 0x801f001U,                 // unused events of known classes
        kUnknownClass, 0x200f001U, 0x400f001U,  // bits of no class
        0x03f001U, 0x8200000U, 0xfffffffU}) {   // bits of several classes
    EXPECT_EQ(Classify(id), Event::kUnknown) << std::hex << id;
  }
  EXPECT_EQ(ClassOf(kUnknownClass), TraceClass::kUnknown);
  EXPECT_EQ(ClassOf(kCsched2Unused), TraceClass::kSched);
}

TEST(Events, VariantBitsDoNotChangeEvent) {
  EXPECT_EQ(Classify(kRunningToBlocked), Event::kRunstateChange);
  EXPECT_EQ(RunstateOld(kRunnableToBlocked), Runstate::kRunnable);
  EXPECT_EQ(RunstateNew(kRunnableToBlocked), Runstate::kBlocked);
  EXPECT_EQ(Classify(kVmexit64), Event::kHvmVmexit);
  EXPECT_EQ(Classify(kVmexit64 | kNestedBit), Event::kHvmVmexit);
  EXPECT_TRUE(IsNested(kVmexit64 | kNestedBit) && Is64(kVmexit64 | kNestedBit));
  EXPECT_EQ(Classify(kSvmExit64), Event::kHvmSvmExit);
  EXPECT_EQ(Classify(kShadowEmulate | kFourLevels), Event::kShadowEmulate);
  EXPECT_EQ(ShadowLevels(kShadowEmulate | kFourLevels), 4U);
  EXPECT_EQ(Classify(GuestEvent(0)), Event::kGuest);
  EXPECT_EQ(Classify(GuestEvent(4095)), Event::kGuest);
  EXPECT_EQ(Classify(kHvmIoportWrite), Event::kHvmIoportWrite);
  EXPECT_EQ(Classify(kHvmIoportRead), Event::kHvmIoportRead);
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

TEST(Events, UnpacksVcpus) {
  EXPECT_EQ(UnpackVcpu(Vcpu(3, 1)), (VcpuRef{DomainId{3}, VcpuId{1}}));
  EXPECT_EQ(UnpackDomainFirst(1U << 16 | 3), (VcpuRef{DomainId{3}, VcpuId{1}}));
}

}  // namespace
}  // namespace xenoscope::trace
