// Steps of a trace: each is taken once, whichever partition has it in the end.
#include "analysis/partition_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace xenoscope::analysis {
namespace {

using ::testing::ElementsAre;

std::vector<size_t> TakeAll(PartitionSchedule& schedule, size_t partition) {
  std::vector<size_t> steps;
  while (const auto step = schedule.TakeStep(partition)) steps.push_back(*step);
  return steps;
}

TEST(PartitionSchedule, GivesEachPartitionItsSteps) {
  PartitionSchedule schedule(7, {0, 3, 5});
  EXPECT_THAT(TakeAll(schedule, 3), ElementsAre(3, 4));
  EXPECT_THAT(TakeAll(schedule, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(TakeAll(schedule, 5), ElementsAre(5, 6));
  EXPECT_EQ(schedule.Split(), std::nullopt);
}

TEST(PartitionSchedule, SplitsWhatHasMostLeft) {
  PartitionSchedule schedule(20, {0, 4, 14});
  EXPECT_EQ(schedule.TakeStep(4), 4U);
  // Left are [0, 4), [5, 14), [14, 20).
  EXPECT_EQ(schedule.Split(), 10U) << "the longer half of nine stays where it was";
  EXPECT_THAT(TakeAll(schedule, 4), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_EQ(schedule.Split(), 17U);
  EXPECT_THAT(TakeAll(schedule, 14), ElementsAre(14, 15, 16));
  EXPECT_THAT(TakeAll(schedule, 17), ElementsAre(17, 18, 19));
  EXPECT_THAT(TakeAll(schedule, 10), ElementsAre(10, 11, 12, 13));
}

TEST(PartitionSchedule, LeavesWhatIsNotWorthAWarmUp) {
  PartitionSchedule one(2, {0, 1});
  EXPECT_EQ(one.Split(), std::nullopt) << "two partitions of one step";
  PartitionSchedule many(100, {0, 3});
  for (int i = 0; i < 94; ++i) EXPECT_TRUE(many.TakeStep(3));
  // Left are [0, 3) and [97, 100): less than a thirty-second.
  EXPECT_EQ(many.Split(), std::nullopt);
}

TEST(PartitionSchedule, GivesEachStepOnceToSeveralThreads) {
  constexpr size_t kSteps = 1000;
  PartitionSchedule schedule(kSteps, {0, 1, 2});
  std::vector<std::vector<size_t>> taken(3);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < taken.size(); ++i) {
    threads.emplace_back([&schedule, &steps = taken[i], i] {
      std::optional<size_t> partition = i;
      for (; partition; partition = schedule.Split()) {
        const std::vector<size_t> more = TakeAll(schedule, *partition);
        EXPECT_TRUE(std::ranges::is_sorted(more));
        steps.insert(steps.end(), more.begin(), more.end());
      }
    });
  }
  threads.clear();
  std::vector<size_t> all;
  for (const auto& steps : taken) all.insert(all.end(), steps.begin(), steps.end());
  std::ranges::sort(all);
  std::vector<size_t> expected(kSteps);
  std::iota(expected.begin(), expected.end(), size_t{0});
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace xenoscope::analysis
