#include "correlate/batch_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::IsEmpty;

using Numbers = std::vector<int>;

// Submits the numbers from 0 on, some in each batch; returns what was delivered. Every so often one
// of the two is slow, so that the other has to wait.
template <size_t kBatches, size_t kAtOnce>
Numbers DeliveredOf(int count, int in_batch) {
  constexpr int kSlow = 97;
  const auto rest = [](int number, int remainder) {
    if (number % kSlow == remainder) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  Numbers delivered;
  BatchThread<Numbers, kBatches, kAtOnce> thread([&](Numbers& batch) {
    if (!batch.empty()) rest(batch.front() / in_batch, 0);
    delivered.insert(delivered.end(), batch.begin(), batch.end());
    batch.clear();
  });
  for (int i = 0; i < count; ++i) {
    thread.Current().push_back(i);
    if (thread.Current().size() < static_cast<size_t>(in_batch)) continue;
    rest(i / in_batch, kSlow / 2);
    thread.Submit();
  }
  thread.Finish();
  return delivered;
}

TEST(BatchThread, DeliversAllInOrder) {
  for (const int count : {1, 7, 8, 9, 10'000}) {
    Numbers all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ((DeliveredOf<2, 1>(count, 4)), all);
    EXPECT_EQ((DeliveredOf<256, 1>(count, 4)), all);
    EXPECT_EQ((DeliveredOf<4, 3>(count, 4)), all);
    EXPECT_EQ((DeliveredOf<16, 8>(count, 4)), all);
  }
}

TEST(BatchThread, EndsWithoutABatch) { EXPECT_THAT((DeliveredOf<4, 2>(0, 4)), IsEmpty()); }

// A thread that keeps up needs few batches, which stay in the processor's caches.
TEST(BatchThread, FillsAgainWhatBecameFreeLast) {
  std::set<const int*> filled;
  BatchThread<int, 100> thread([](int& batch) { batch = 0; });
  for (int i = 0; i < 50; ++i) {
    filled.insert(&thread.Current());
    thread.Submit();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  thread.Finish();
  EXPECT_LT(filled.size(), 50U);
}

}  // namespace
}  // namespace xenoscope::correlate
