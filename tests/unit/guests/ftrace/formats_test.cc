#include "guests/ftrace/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "guests/ftrace/kernel_event.h"
#include "page_builder.h"

namespace xenoscope::guests {
namespace {

using testing::HasSubstr;

TEST(Formats, GiveThePageAndTheFieldsOfEachEvent) {
  const auto formats = ParseFormats(kSwitchFormats);
  ASSERT_TRUE(formats.ok()) << formats.status();
  EXPECT_EQ(formats->page.PageSize(), 4096U);
  ASSERT_EQ(formats->events.size(), 13U);
  const EventFormat& event = formats->events[0];
  EXPECT_EQ(event.system, "sched");
  EXPECT_EQ(event.name, "sched_switch");
  EXPECT_EQ(event.id, kSwitchId);
  const EventField* const state = event.Find("prev_state");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->offset, 32U);
  EXPECT_EQ(state->size, 8U);
  EXPECT_TRUE(state->is_signed);
  EXPECT_TRUE(event.Find("next_comm")->is_array);
  const EventField* const comm = formats->events[1].Find("comm");
  ASSERT_NE(comm, nullptr);
  EXPECT_TRUE(comm->is_dynamic);
  EXPECT_TRUE(comm->is_array);
}

TEST(Formats, HaveTheLastFormatOfANumber) {
  const auto formats = ParseFormats("# a/b\nID: 5\n# a/c\nID: 5\n");
  ASSERT_TRUE(formats.ok()) << formats.status();
  ASSERT_EQ(formats->events.size(), 1U);
  EXPECT_EQ(formats->events[0].name, "c");
}

TEST(Formats, AreRefusedWithTheReason) {
  const auto error = [](const std::string& text) {
    return std::string(Message(ParseFormats(text).status()));
  };
  EXPECT_THAT(error("# sched/sched_switch\nformat:\n"), HasSubstr("sched/sched_switch has no ID"));
  EXPECT_THAT(error("# a/b\nID: 70000\n"), HasSubstr("no ID"));
  EXPECT_THAT(error("# a/b\nID: 1\n\tfield:int x;\toffset:99999999;\tsize:4;\tsigned:0;\n"),
              HasSubstr("no field of an event"));
  EXPECT_THAT(error("# header_page\n\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"),
              HasSubstr("does not describe a page"));
  EXPECT_THAT(error("# a/b\nID: 1\n\tfield:__data_loc char[] x;\toffset:8;\tsize:8;\tsigned:0;\n"),
              HasSubstr("has 8 bytes, not 4"));
  std::string many = "# a/b\nID: 1\n";
  for (int i = 0; i < 129; ++i) many += "field:int x; offset:8; size:4; signed:0;\n";
  EXPECT_THAT(error(many), HasSubstr("more than 128 fields"));
}

TEST(EventDecoder, DecodesByTheKernelsOffsets) {
  const auto decoder = EventDecoder::Create(*ParseFormats(kSwitchFormats));
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  const auto page = PageBuilder(50).Waking(1, 7, 8, "nginx").Switch(2, 7, 1, 8, "nginx").Page();
  PageReader reader(page, {});
  RawEvent raw;
  KernelEvent event;
  bool malformed = false;
  ASSERT_TRUE(reader.Next(raw) && decoder->Decode(raw, event, malformed));
  EXPECT_EQ(event.kind, KernelEventKind::kWaking);
  EXPECT_EQ(event.current, 7U);
  EXPECT_EQ(event.thread, 8U);
  EXPECT_EQ(event.name, "nginx");
  ASSERT_TRUE(reader.Next(raw) && decoder->Decode(raw, event, malformed));
  EXPECT_EQ(event.kind, KernelEventKind::kSwitch);
  EXPECT_EQ(event.tsc, 53U);
  EXPECT_EQ(event.thread, 7U);
  EXPECT_EQ(event.next, 8U);
  EXPECT_EQ(event.state, 1U);
  EXPECT_EQ(event.name, "nginx");
}

TEST(EventDecoder, PassesOverOtherEventsAndShortOnes) {
  const auto decoder = EventDecoder::Create(*ParseFormats(kSwitchFormats));
  ASSERT_TRUE(decoder.ok());
  KernelEvent event;
  bool malformed = true;
  const std::vector<std::byte> other(8);
  EXPECT_FALSE(decoder->Decode({0, other}, event, malformed));
  EXPECT_FALSE(malformed);
  const auto page = PageBuilder(0).Switch(0, 1, 0, 2, "a").Page();
  const Bytes data = Bytes(page).subspan(PageBuilder::kHead + 4, 59);
  EXPECT_FALSE(decoder->Decode({0, data}, event, malformed));
  EXPECT_TRUE(malformed);
  EXPECT_FALSE(decoder->Decode({0, data.first(1)}, event, malformed));
  EXPECT_TRUE(malformed);
}

TEST(EventDecoder, RefusesAKernelWhoseEventsLackAField) {
  const auto formats = ParseFormats(
      "# sched/sched_waking\nID: 3\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n");
  ASSERT_TRUE(formats.ok());
  EXPECT_THAT(std::string(Message(EventDecoder::Create(*formats).status())),
              HasSubstr("sched_waking has no field pid"));
}

TEST(SwitchState, SaysWhyAThreadStopped) {
  EXPECT_TRUE(IsRunnable(0));
  EXPECT_FALSE(WasPreempted(0));
  EXPECT_TRUE(WasPreempted(0x100));   // since Linux 4.14
  EXPECT_TRUE(WasPreempted(0x1000));  // before
  EXPECT_FALSE(IsRunnable(1));
  EXPECT_TRUE(IsUninterruptible(2));
  EXPECT_TRUE(IsUninterruptible(0x82));
}

}  // namespace
}  // namespace xenoscope::guests
