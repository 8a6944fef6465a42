#include "correlate/offset_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr OffsetRange kAll{std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max()};

TEST(OffsetRanges, AGuestReadItsTscWhileItRan) {
  const RunningRanges ran{{Tsc{100}, Tsc{200}}, {Tsc{300}, Tsc{400}}};
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{0}, kAll),
              ElementsAre(OffsetRange{600, 700}, OffsetRange{800, 900}));
  EXPECT_THAT(AllowedOffsets(0, ran, Tsc{0}, kAll),
              ElementsAre(OffsetRange{-400, -300}, OffsetRange{-200, -100}));
}

TEST(OffsetRanges, EarlierRangesAreLeftOut) {
  const RunningRanges ran{{Tsc{100}, Tsc{200}}, {Tsc{300}, Tsc{400}}};
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{201}, kAll), ElementsAre(OffsetRange{600, 700}));
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{200}, kAll),
              ElementsAre(OffsetRange{600, 700}, OffsetRange{800, 900}));
}

TEST(OffsetRanges, RangesBeyondTheLimitsAreLeftOut) {
  const RunningRanges ran{{Tsc{100}, Tsc{200}}, {Tsc{300}, Tsc{400}}, {Tsc{500}, Tsc{600}}};
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{0}, {650, 750}), ElementsAre(OffsetRange{600, 700}));
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{0}, {701, 799}), IsEmpty());
}

TEST(OffsetRanges, RangesThatTouchAreOne) {
  const RunningRanges ran{{Tsc{100}, Tsc{200}}, {Tsc{200}, Tsc{400}}};
  EXPECT_THAT(AllowedOffsets(1000, ran, Tsc{0}, kAll), ElementsAre(OffsetRange{600, 900}));
}

TEST(OffsetRanges, BothEndsAreIncluded) {
  const std::vector<OffsetRange> a{{0, 10}, {20, 30}, {40, 50}};
  EXPECT_THAT(Intersection(a, std::vector<OffsetRange>{{10, 20}, {45, 60}}),
              ElementsAre(OffsetRange{10, 10}, OffsetRange{20, 20}, OffsetRange{45, 50}));
  EXPECT_THAT(Intersection(a, std::vector<OffsetRange>{{11, 19}, {51, 60}}), IsEmpty());
  EXPECT_THAT(Intersection(a, {}), IsEmpty());
}

// An offset is in the intersection if it is in both.
TEST(OffsetRanges, IntersectionHasWhatBothHave) {
  constexpr int kEnd = 60;
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp,cert-msc32-c): the same each time
  const auto make = [&random] {
    std::vector<OffsetRange> ranges;
    for (auto at = static_cast<int64_t>(random() % 4); at < kEnd;) {
      const int64_t end = at + static_cast<int64_t>(random() % 8);
      ranges.push_back({at, end});
      at = end + 2 + static_cast<int64_t>(random() % 8);
    }
    return ranges;
  };
  const auto has = [](const std::vector<OffsetRange>& ranges, int64_t offset) {
    for (const OffsetRange& range : ranges) {
      if (range.min <= offset && offset <= range.max) return true;
    }
    return false;
  };
  for (int round = 0; round < 500; ++round) {
    const auto a = make();
    const auto b = make();
    const auto both = Intersection(a, b);
    for (int64_t offset = -1; offset < kEnd + 20; ++offset) {
      ASSERT_EQ(has(both, offset), has(a, offset) && has(b, offset)) << offset;
    }
  }
}

}  // namespace
}  // namespace xenoscope::correlate
