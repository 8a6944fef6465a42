#include "trace/guest_mark.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/trace/record_ids.h"

namespace xenoscope::trace {
namespace {

constexpr uint32_t Header(uint32_t version, uint32_t kind, uint32_t bytes) {
  return version | kind << 4 | bytes << 8 | 0x1234U << 16;
}

std::optional<GuestMark> Decoded(const std::vector<uint32_t>& words,
                                 uint32_t number = kGuestMarkEvent) {
  Record record;
  record.event = Event::kGuest;
  record.id = GuestEvent(number);
  record.payload = {reinterpret_cast<const std::byte*>(words.data()),
                    static_cast<uint32_t>(words.size())};
  return DecodeGuestMark(record);
}

TEST(GuestMark, HasTextKindAndClock) {
  const auto mark = Decoded({5, 6, Header(1, 2, 3), 0x636261});
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(mark->guest_tsc, 0x6'0000'0005U);
  EXPECT_EQ(mark->kind, GuestMarkKind::kEnd);
  EXPECT_EQ(mark->number, 0x1234);
  EXPECT_EQ(mark->part, 0);
  EXPECT_FALSE(mark->continues);
}

TEST(GuestMark, TextIsInTheRecord) {
  const std::vector<uint32_t> words = {5, 6, Header(1, 0, 4), 0x64636261};
  EXPECT_EQ(Decoded(words)->text, "abcd");
}

TEST(GuestMark, OtherRecordsAreNoMarks) {
  const std::vector<uint32_t> good = {5, 6, Header(1, 0, 4), 0x64636261};
  EXPECT_TRUE(Decoded(good).has_value());
  EXPECT_FALSE(Decoded(good, kGuestMarkEvent + 1).has_value());
  EXPECT_FALSE(Decoded({}).has_value());
  EXPECT_FALSE(Decoded({5, 6}).has_value());
  EXPECT_FALSE(Decoded({5, 6, Header(2, 0, 4), 0x64636261}).has_value()) << "another version";
  EXPECT_FALSE(Decoded({5, 6, Header(1, 3, 4), 0x64636261}).has_value()) << "an unknown kind";
  EXPECT_FALSE(Decoded({5, 6, Header(1, 0, 5), 0x64636261}).has_value()) << "text beyond its end";
  EXPECT_FALSE(Decoded({5, 6, Header(1, 0, 31), 1, 2, 3, 4}).has_value()) << "text beyond its end";
}

}  // namespace
}  // namespace xenoscope::trace
