#include "guests/ftrace/page_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "page_builder.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Found = std::vector<std::pair<uint64_t, size_t>>;  // time and length of each event

Found Read(PageReader& reader) {
  Found found;
  for (RawEvent event; reader.Next(event);) found.emplace_back(event.tsc, event.data.size());
  return found;
}

std::vector<std::byte> Words(size_t words) { return std::vector<std::byte>(words * 4); }

TEST(PageReader, AddsTheTimesBetweenEvents) {
  const auto page = PageBuilder(1000).Event(0, Words(1)).Event(5, Words(28)).Page();
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(1000, 4), Pair(1005, 112)));
  EXPECT_FALSE(reader.lost_before());
  EXPECT_EQ(reader.damaged_bytes(), 0U);
}

TEST(PageReader, FollowsTimeExtendsAndAbsoluteStamps) {
  const uint64_t later = uint64_t{1} << 40;
  const auto page = PageBuilder(7)
                        .TimeExtend(later)
                        .Event(3, Words(1))
                        .TimeStamp(2 * later)
                        .Event(0, Words(1))
                        .Page();
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(later + 10, 4), Pair(2 * later, 4)));
}

TEST(PageReader, CompletesAStampThatLacksTheUpperBits) {
  const uint64_t top = uint64_t{1} << 59;
  const auto page = PageBuilder(3 * top + 50)
                        .TimeStamp(70)
                        .Event(0, Words(1))
                        .TimeStamp(60)
                        .Event(0, Words(1))
                        .Page();
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(3 * top + 70, 4), Pair(4 * top + 60, 4)));
}

TEST(PageReader, TakesLongEventsAndSkipsDiscardedOnes) {
  const auto page = PageBuilder(0)
                        .LongEvent(1, Words(40))
                        .Discarded(10, 3)
                        .Discarded(1, 0)
                        .Event(1, Words(2))
                        .Page();
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(1, 160), Pair(12, 8)));
}

TEST(PageReader, EndsAtPaddingUpToThePagesEnd) {
  const auto page = PageBuilder(0).Event(1, Words(1)).Head(29, 0).Event(1, Words(1)).Page();
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(1, 4)));
  EXPECT_EQ(reader.damaged_bytes(), 0U);
}

TEST(PageReader, SaysHowManyEventsWereLostBeforeThePage) {
  const auto counted = PageBuilder(0).Event(1, Words(1)).Page(/*is_lossy=*/true, /*lost=*/321);
  PageReader reader(counted, {});
  EXPECT_TRUE(reader.lost_before());
  EXPECT_EQ(reader.lost_events(), 321U);
  EXPECT_THAT(Read(reader), ElementsAre(Pair(1, 4)));

  const auto uncounted = PageBuilder(0).Event(1, Words(1)).Page(/*is_lossy=*/true);
  PageReader second(uncounted, {});
  EXPECT_TRUE(second.lost_before());
  EXPECT_EQ(second.lost_events(), 0U);
}

TEST(PageReader, ReadsPagesOfA32BitKernel) {
  std::vector<std::byte> page = PageBuilder(9).Event(1, Words(1)).Page();
  page.erase(page.begin() + 12, page.begin() + 16);
  PageReader reader(page, PageLayout{8, 4, 12, 4084});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(10, 4)));
}

TEST(PageReader, CountsWhatReachesBeyondThePage) {
  const auto torn = PageBuilder(0).Event(1, Words(1)).Head(5, 1).Page();
  PageReader event(torn, {});
  EXPECT_THAT(Read(event), ElementsAre(Pair(1, 4)));
  EXPECT_EQ(event.damaged_bytes(), 4U);

  const auto extend = PageBuilder(0).Head(30, 1).Page();
  PageReader without_word(extend, {});
  EXPECT_THAT(Read(without_word), IsEmpty());
  EXPECT_EQ(without_word.damaged_bytes(), 4U);

  std::vector<std::byte> length = PageBuilder(0).Event(1, Words(1)).Page();
  length[9] = std::byte{0xff};  // more bytes of events than the page has
  PageReader too_long(length, {});
  EXPECT_THAT(Read(too_long), IsEmpty());
  EXPECT_EQ(too_long.damaged_bytes(), 4080U);

  PageReader nothing(Bytes(length).first(11), {});
  EXPECT_THAT(Read(nothing), IsEmpty());
  EXPECT_EQ(nothing.damaged_bytes(), 11U);
}

TEST(PageReader, TakesNoEventWhoseLengthLeavesOutItsOwnWord) {
  const auto page = PageBuilder(0).Head(0, 1).Head(3, 0).Page();  // a length of 3
  PageReader reader(page, {});
  EXPECT_THAT(Read(reader), ElementsAre(Pair(1, 0)));
  const auto zero = PageBuilder(0).Head(0, 1).Head(0, 0).Page();
  PageReader second(zero, {});
  EXPECT_THAT(Read(second), IsEmpty());
  EXPECT_EQ(second.damaged_bytes(), 8U);
}

}  // namespace
}  // namespace xenoscope::guests
