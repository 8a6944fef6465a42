#include "correlate/history_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;

std::vector<int> All(const HistoryQueue<int>& queue) { return {queue.begin(), queue.end()}; }

TEST(HistoryQueue, KeepsWhatIsNotOld) {
  HistoryQueue<int> queue;
  EXPECT_TRUE(queue.empty());
  queue.DropWhile([](int /*each*/) { return true; });
  for (int i = 0; i < 6; ++i) queue.Add(i);
  queue.DropWhile([](int each) { return each < 2; });
  EXPECT_THAT(All(queue), ElementsAre(2, 3, 4, 5));
  queue.DropWhile([](int each) { return each < 5; });
  EXPECT_THAT(All(queue), ElementsAre(5));
  queue.Append() = 6;
  EXPECT_EQ(queue.back(), 6);
  EXPECT_EQ(queue.size(), 2);
  queue.DropWhile([](int /*each*/) { return true; });
  EXPECT_TRUE(queue.empty());
}

TEST(HistoryQueue, KeepsTheLast) {
  HistoryQueue<int> queue;
  for (int i = 0; i < 15; ++i) queue.Add(i);
  queue.KeepLast(4);
  EXPECT_EQ(queue.size(), 15);
  queue.Add(15);
  queue.KeepLast(4);
  EXPECT_THAT(All(queue), ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(*queue.From(13), 13);
  queue.KeepLast(1);
  EXPECT_THAT(All(queue), ElementsAre(15));
}

// Entries keep their numbers, however many are forgotten, and wherever the queue is moved.
TEST(HistoryQueue, NumbersEntries) {
  HistoryQueue<int> queue;
  for (int i = 0; i < 1000; ++i) {
    queue.Add(i);
    if (i % 7 == 0) queue.DropWhile([i](int each) { return each < i - 20; });
  }
  EXPECT_EQ(queue.next_number(), 1000);
  EXPECT_EQ(*queue.From(990), 990);
  EXPECT_EQ(*queue.From(0), *queue.begin());
  EXPECT_EQ(queue.From(1000), queue.end());
  const HistoryQueue<int> moved = std::move(queue);
  EXPECT_EQ(*moved.From(995), 995);
  EXPECT_EQ(moved.next_number(), 1000);
}

}  // namespace
}  // namespace xenoscope::correlate
