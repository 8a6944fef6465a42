// Ranges that overlap, compared with a search through all of them.
#include "symbolizer/disjoint_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace xenoscope::symbolizer {
namespace {

// Returns the owner of the range that begins last among those that hold the address.
uint32_t Expected(const std::vector<OwnedRange>& ranges, Address address) {
  const OwnedRange* best = nullptr;
  for (const OwnedRange& range : ranges) {
    if (address < range.begin || address >= range.end) continue;
    if (best == nullptr || range.begin > best->begin ||
        (range.begin == best->begin && range.owner > best->owner)) {
      best = &range;
    }
  }
  return best == nullptr ? DisjointRanges::kNoOwner : best->owner;
}

TEST(DisjointRanges, EmptyRangesHaveNoOwner) {
  const DisjointRanges ranges = MakeDisjoint({{5, 5, 1}, {0, 9, 2}, {7, 3, 3}});
  EXPECT_TRUE(ranges.empty());
  for (const Address at : {Address{0}, Address{5}, kLastAddress}) {
    EXPECT_EQ(ranges.Find(at), DisjointRanges::kNoOwner);
  }
}

TEST(DisjointRanges, InnermostOfNestedRangesOwns) {
  const DisjointRanges ranges =
      MakeDisjoint({{10, 100, 0}, {20, 60, 1}, {20, 30, 2}, {90, 120, 3}});
  EXPECT_EQ(ranges.Find(9), DisjointRanges::kNoOwner);
  EXPECT_EQ(ranges.Find(10), 0U);
  EXPECT_EQ(ranges.Find(20), 2U);
  EXPECT_EQ(ranges.Find(30), 1U);
  EXPECT_EQ(ranges.Find(60), 0U);
  EXPECT_EQ(ranges.Find(90), 3U);
  EXPECT_EQ(ranges.Find(119), 3U);
  EXPECT_EQ(ranges.Find(120), DisjointRanges::kNoOwner);
}

TEST(DisjointRanges, CoverTheLastAddress) {
  const DisjointRanges ranges =
      MakeDisjoint({{1, kLastAddress, 0}, {kLastAddress - 9, kLastAddress, 1}});
  EXPECT_EQ(ranges.Find(1), 0U);
  EXPECT_EQ(ranges.Find(kLastAddress / 2), 0U);
  EXPECT_EQ(ranges.Find(kLastAddress - 10), 0U);
  EXPECT_EQ(ranges.Find(kLastAddress - 9), 1U);
  EXPECT_EQ(ranges.Find(kLastAddress), DisjointRanges::kNoOwner);
}

TEST(DisjointRanges, AgreeWithALinearSearch) {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  for (int round = 0; round < 200; ++round) {
    // The ranges are close together, or in two places far apart, as a kernel and its modules.
    const int scale = round % 4 == 0 ? 40 : 0;
    std::vector<OwnedRange> ranges;
    for (uint32_t owner = 0; owner < 1 + random() % 40; ++owner) {
      const Address begin = random() % 200 + ((random() % 2) << scale);
      ranges.push_back({begin, begin + random() % 50, owner});
    }
    const DisjointRanges disjoint = MakeDisjoint(ranges);
    for (const OwnedRange& range : ranges) {
      for (const Address base : {range.begin, range.end}) {
        for (const Address at : {base - 1, base, base + 1}) {
          if (range.begin == 0) continue;
          std::vector<OwnedRange> counted = ranges;
          std::erase_if(counted, [](const OwnedRange& r) { return r.begin == 0; });
          ASSERT_EQ(disjoint.Find(at), Expected(counted, at)) << at << " in round " << round;
        }
      }
    }
  }
}

}  // namespace
}  // namespace xenoscope::symbolizer
