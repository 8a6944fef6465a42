#include "correlate/time_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace xenoscope::correlate {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr uint64_t kFar = 4 * TimeSpans::kGap;

TEST(TimeSpans, JoinInstantsThatAreNear) {
  // In any order.
  for (const std::vector<uint64_t>& instants :
       {std::vector<uint64_t>{100, 900, kFar, kFar + TimeSpans::kGap},
        std::vector<uint64_t>{kFar + TimeSpans::kGap, 900, kFar, 100}}) {
    TimeSpans spans;
    EXPECT_TRUE(spans.empty());
    for (const uint64_t at : instants) spans.Add(Tsc{at});
    EXPECT_FALSE(spans.empty());
    EXPECT_THAT(spans.Ranges(), ElementsAre(TscRange{Tsc{100}, Tsc{901}},
                                            TscRange{Tsc{kFar}, Tsc{kFar + TimeSpans::kGap + 1}}));
  }
}

TEST(TimeSpans, JoinTheNearestWhereThereAreManyRanges) {
  TimeSpans spans;
  for (uint64_t i = 0; i < TimeSpans::kMost; ++i) spans.Add(Tsc{10 * kFar * i});
  EXPECT_THAT(spans.Ranges(), SizeIs(TimeSpans::kMost));
  spans.Add(Tsc{kFar});
  spans.Add(Tsc{1000 * kFar});
  const std::vector<TscRange> ranges = spans.Ranges();
  EXPECT_THAT(ranges, SizeIs(TimeSpans::kMost + 1));
  EXPECT_EQ(ranges[0], (TscRange{Tsc{0}, Tsc{kFar + 1}}));
  EXPECT_EQ(ranges[1].begin, Tsc{10 * kFar}) << "others are as they were";
}

TEST(TimeSpans, AddThoseOfAnother) {
  TimeSpans spans;
  spans.Add(Tsc{kFar});
  TimeSpans more;
  spans.Add(more);
  EXPECT_THAT(spans.Ranges(), SizeIs(1));
  more.Add(Tsc{3 * kFar});
  more.Add(Tsc{kFar + 5});
  spans.Add(more);
  EXPECT_THAT(spans.Ranges(), ElementsAre(TscRange{Tsc{kFar}, Tsc{kFar + 6}},
                                          TscRange{Tsc{3 * kFar}, Tsc{3 * kFar + 1}}));
}

}  // namespace
}  // namespace xenoscope::correlate
