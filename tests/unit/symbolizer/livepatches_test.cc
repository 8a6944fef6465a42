// Lists of livepatches: as Xen 4.17 printed one (tests/data/livepatch), and invented ones.
#include "symbolizer/livepatches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace xenoscope::symbolizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kTitle = "(XEN) 'x' pressed - Dumping all livepatch patches\n";

std::string Patch(std::string_view name, Address begin, Address end) {
  return fmt::format(
      "(XEN)  name={} state=APPLIED(2) {:016x} (.data={:016x}, .rodata={:016x}) using 3 pages.\n",
      name, begin, end, end + 0x1000);
}

std::string Replaces(std::string_view name, Address address, uint64_t size) {
  return fmt::format("(XEN)     {} patch ffff82d040326c30(81) with {:016x} ({})\n", name, address,
                     size);
}

TEST(Livepatches, ParsesXenOutput) {
  const auto file = MappedFile::Open(XENOSCOPE_TEST_DATA "/livepatch/list");
  ASSERT_TRUE(file.ok());
  const LivepatchList list = ReadLivepatches(AsText(file->bytes()));
  const Livepatch slow_time{.name = "slow_time",
                            .begin = 0xffff82d0405b0000,
                            .end = 0xffff82d0405b1000,
                            .build_id = "64e0a25684f94284d6a2462fc9c8e6858d4151df",
                            .functions = {{"get_s_time", 0xffff82d0405b0000, 21}}};
  EXPECT_THAT(list.patches, ElementsAre(slow_time));
  EXPECT_EQ(list.malformed, 0);
  EXPECT_EQ(list.displaced, 0);
}

TEST(Livepatches, AcceptsConsoleTimestamps) {
  for (const std::string_view time : {"", "[2026-11-22 19:00:00] ", "[    3.141592] "}) {
    const std::string text = fmt::format(
        "(XEN) {0}'x' pressed - Dumping all livepatch patches\r\n"
        "(XEN) {0} name=a state=APPLIED(2) 1000 (.data=2000, .rodata=0) using 1 pages.\r\n"
        "(XEN) {0}    f patch 500(8) with 1010 (16)\r\n",
        time);
    EXPECT_TRUE(HasLivepatchList(text));
    EXPECT_TRUE(BeginsLivepatchList(std::string_view(text).substr(0, text.find('\n'))));
    const LivepatchList list = ReadLivepatches(text);
    ASSERT_THAT(list.patches, SizeIs(1)) << time;
    EXPECT_THAT(list.patches[0].functions, ElementsAre(LivepatchFunction{"f", 0x1010, 16}));
  }
}

TEST(Livepatches, AcceptsAnyNames) {
  const LivepatchList list =
      ReadLivepatches(std::string(kTitle) + Patch("a state=CHECKED(1) b\x1b[1m", 0x1000, 0x2000) +
                      Replaces("f patch 5(5) with 6 (6)", 0x1000, 8));
  ASSERT_THAT(list.patches, SizeIs(1));
  EXPECT_EQ(list.patches[0].name, "a state=CHECKED(1) b?[1m");
  EXPECT_THAT(list.patches[0].functions,
              ElementsAre(LivepatchFunction{"f patch 5(5) with 6 (6)", 0x1000, 8}));
}

TEST(Livepatches, SkipsOtherOutput) {
  const LivepatchList list = ReadLivepatches(
      "(d1)  name=guest state=APPLIED(2) 1 (.data=2, .rodata=2) using 1 pages.\n" +
      std::string(kTitle) + Patch("a", 0x1000, 0x2000) +
      "(XEN) d1v0 something\n(XEN)     indented\ndom0 says\n" + Replaces("f", 0x1000, 8));
  ASSERT_THAT(list.patches, SizeIs(1));
  EXPECT_THAT(list.patches[0].functions, SizeIs(1));
  EXPECT_EQ(list.malformed, 0);
}

TEST(Livepatches, CountsDamagedLines) {
  const std::string a = Patch("a", 0x1000, 0x2000);
  const std::string head = std::string(kTitle) + a;
  // The replacements are beyond the livepatch's code; without a size; cut off; and of no function.
  EXPECT_EQ(ReadLivepatches(head + Replaces("f", 0x1ff9, 8)).malformed, 1);
  EXPECT_EQ(ReadLivepatches(head + Replaces("f", 0x1000, 0)).malformed, 1);
  EXPECT_EQ(ReadLivepatches(head + "(XEN)     f patch 500(8) with 10\n").malformed, 1);
  EXPECT_EQ(ReadLivepatches(head + Replaces("f", 0, 8)).malformed, 0);
  // Its functions would belong to another livepatch.
  const LivepatchList cut =
      ReadLivepatches(head + "(XEN)  name=b state=APPLIED(2) 30\n" + Replaces("f", 0x1000, 8));
  EXPECT_EQ(cut.malformed, 1);
  ASSERT_THAT(cut.patches, SizeIs(1));
  EXPECT_THAT(cut.patches[0].functions, IsEmpty());
}

TEST(Livepatches, MergesRepeatedListings) {
  const std::string once = std::string(kTitle) + Patch("a", 0x1000, 0x2000) +
                           Replaces("f", 0x1000, 8) + "(XEN) build-id=0123abcd\n";
  const LivepatchList list = ReadLivepatches(once + once);
  ASSERT_THAT(list.patches, SizeIs(1));
  EXPECT_EQ(list.patches[0].build_id, "0123abcd");
  EXPECT_EQ(list.displaced, 0);
}

// b came to where a had been: it is not known whose code a sample was in.
TEST(Livepatches, DropsOverlappingPayloads) {
  const LivepatchList list = ReadLivepatches(
      std::string(kTitle) + Patch("a", 0x1000, 0x3000) + Patch("c", 0x4000, 0x5000) +
      std::string(kTitle) + Patch("b", 0x2000, 0x3000) + Patch("c", 0x4000, 0x5000));
  ASSERT_THAT(list.patches, SizeIs(1));
  EXPECT_EQ(list.patches[0].name, "c");
  EXPECT_EQ(list.displaced, 2);
}

}  // namespace
}  // namespace xenoscope::symbolizer
