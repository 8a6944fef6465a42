// Each iteration is done once, by no more threads than are allowed and than it is worth.
#include "base/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace xenoscope {
namespace {

using testing::Each;

class ParallelTest : public ::testing::Test {
 protected:
  ~ParallelTest() override { SetThreadLimit(before_); }

  const unsigned before_ = ThreadLimit();
};

TEST_F(ParallelTest, DividesIterationsOverThreads) {
  struct Case {
    unsigned limit;
    size_t count;
    size_t items_per_thread;
    size_t most_threads;
  };
  constexpr Case kCases[] = {
      {1, 100, 1, 1}, {4, 100, 1, 4}, {4, 100, 50, 2}, {4, 2, 1, 2}, {4, 5, 10, 1}, {4, 0, 1, 1},
  };
  for (const Case& c : kCases) {
    SetThreadLimit(c.limit);
    std::vector<int> done(c.count);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    ForEachInParallel(c.count, c.items_per_thread, [&](size_t i) {
      const std::lock_guard lock(mutex);
      ++done[i];
      threads.insert(std::this_thread::get_id());
    });
    EXPECT_THAT(done, Each(1)) << c.limit << " " << c.count;
    EXPECT_LE(threads.size(), c.most_threads) << c.limit << " " << c.count;
  }
}

TEST_F(ParallelTest, ThereIsAlwaysOneThread) {
  SetThreadLimit(0);
  EXPECT_EQ(ThreadLimit(), 1U);
}

TEST_F(ParallelTest, UsesTheProcessorsOnWhichItMayRun) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(before_, CPU_COUNT(&allowed));
}

TEST_F(ParallelTest, ThreadsMayRunWhereTheirCreatorMay) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int i = 0; i < 50; ++i) {  // some end before they are moved
    cpu_set_t of_thread;
    CPU_ZERO(&of_thread);
    {
      const std::jthread thread = StartThread([&] {
        for (int tries = 0; tries < 1'000 && !CPU_EQUAL(&of_thread, &allowed); ++tries) {
          sched_yield();
          sched_getaffinity(0, sizeof of_thread, &of_thread);
        }
      });
    }
    EXPECT_TRUE(CPU_EQUAL(&of_thread, &allowed));
    cpu_set_t of_creator;
    ASSERT_EQ(sched_getaffinity(0, sizeof of_creator, &of_creator), 0);
    EXPECT_TRUE(CPU_EQUAL(&of_creator, &allowed));
  }
}

}  // namespace
}  // namespace xenoscope
