#include "trace/event_mask.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace xenoscope::trace {
namespace {

EventMask Parsed(std::string_view text) { return ParseEventMask(text).value_or(EventMask{}); }

TEST(EventMask, IncludesByClassAndSubclassAsXenDoes) {
  const EventMask entries{0x00081000};  // TRC_HVM_ENTRYEXIT
  EXPECT_TRUE(entries.Includes(Event::kHvmVmexit));
  EXPECT_FALSE(entries.Includes(Event::kHvmCpuid));
  EXPECT_FALSE(entries.Includes(Event::kRunstateChange));  // same subclass bit, other class
  // The bits of subclasses are those of all classes.
  const EventMask both{0x000a2000};
  EXPECT_TRUE(both.Includes(Event::kHvmCpuid));
  EXPECT_TRUE(both.Includes(Event::kCsched2CreditReset));
  EXPECT_FALSE(both.Includes(Event::kRunstateChange));
  // A class without subclasses has all their bits.
  EXPECT_TRUE(EventMask{0x00108000}.Includes(Event::kMemPageGrantMap));
  EXPECT_TRUE(EventMask{0x08001000}.Includes(Event::kGuest));
}

TEST(EventMask, HasNothingWithoutAClassOrWithoutASubclass) {
  EXPECT_TRUE(EventMask{}.IsEmpty());
  EXPECT_TRUE(EventMask{0x00080000}.IsEmpty());
  EXPECT_TRUE(EventMask{0x0000f000}.IsEmpty());
  EXPECT_FALSE(EventMask{0x00081000}.IsEmpty());
}

TEST(EventMask, ParsesWhatXentraceTakes) {
  EXPECT_EQ(Parsed("0x0008f000").value, 0x0008f000U);
  EXPECT_EQ(Parsed("585728").value, 0x0008f000U);
  EXPECT_EQ(Parsed("02170000").value, 0x0008f000U);
  EXPECT_EQ(Parsed("gen").value, 0x0001f000U);
  EXPECT_EQ(Parsed("sched").value, 0x0002f000U);
  EXPECT_EQ(Parsed("dom0op").value, 0x0004f000U);
  EXPECT_EQ(Parsed("hvm").value, 0x0008f000U);
  EXPECT_EQ(Parsed("all").value, 0x0ffff000U);
}

TEST(EventMask, ParsesOtherClassesAndLists) {
  EXPECT_EQ(Parsed("mem").value, 0x0010f000U);
  EXPECT_EQ(Parsed("guest").value, 0x0800f000U);
  EXPECT_EQ(Parsed("hvm,0x00201000").value, 0x0028f000U);
  EXPECT_EQ(Parsed("profile,mem").value, Parsed("profile").value | 0x0010f000U);
}

TEST(EventMask, RefusesOtherTexts) {
  for (const char* text :
       {"", "hvm,", ",hvm", "hvmm", "unknown", "0x", "0x1ffffffff", "8f000", "-1", "12k"}) {
    EXPECT_FALSE(ParseEventMask(text).has_value()) << text;
  }
}

// In each class that a preset has, what its description promises.
TEST(EventMask, PresetsHaveWhatTheyAreFor) {
  std::set<std::string_view> names;
  for (const NamedMask& preset : kMaskPresets) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_TRUE(preset.mask.Includes(Event::kRunstateChange)) << preset.name;
  }
  EXPECT_TRUE(names.contains(kDefaultMaskName));
  EXPECT_EQ(Parsed(kDefaultMaskName), kDefaultMask);
  const EventMask profile = Parsed("profile");
  for (const Event event :
       {Event::kHvmVmexit, Event::kHvmVmentry, Event::kHvmNmi, Event::kHvmCpuid,
        Event::kHvmIoportWrite, Event::kShadowEmulate, Event::kGuest, Event::kDom0DomRem}) {
    EXPECT_TRUE(profile.Includes(event)) << Info(event).name;
  }
  for (const Event event :
       {Event::kPvTrap, Event::kPvHypercallV2, Event::kSchedWake, Event::kHvmEmulHpetStartTimer,
        Event::kMemPageGrantMap, Event::kPmIdleEntry, Event::kHwIrqHandled}) {
    EXPECT_FALSE(profile.Includes(event)) << Info(event).name;
  }
  const EventMask exits = Parsed("exits");
  EXPECT_TRUE(exits.Includes(Event::kHvmVmexit));
  EXPECT_FALSE(exits.Includes(Event::kHvmCpuid));
  EXPECT_FALSE(exits.Includes(Event::kPvHypercallV2));
}

}  // namespace
}  // namespace xenoscope::trace
