// Tests that samples come out thread by thread in the order of time, whatever is in memory.
#include "report/export/sample_spool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace xenoscope::report {
namespace {

using Spooled = SampleSpool::Sample;

std::vector<Spooled> SamplesOf(const SampleSpool& spool, uint32_t thread) {
  std::vector<Spooled> samples;
  spool.ForEach(thread, [&samples](const Spooled& sample) { samples.push_back(sample); });
  return samples;
}

// The order is that of a stable sort of all samples; many are of one instant.
TEST(SampleSpool, SortsByThreadAndTime) {
  for (const size_t buffered : {size_t{1}, size_t{7}, size_t{100}, SampleSpool::kBuffered}) {
    std::mt19937 random(3);
    SampleSpool spool(buffered);
    std::vector<std::vector<Spooled>> expected(5);
    for (uint32_t number = 0; number < 700; ++number) {
      // The last thread has samples at the end only, and one before it has none.
      const uint32_t thread = number < 690 ? static_cast<uint32_t>(random() % 3) : 4;
      const Spooled sample{Tsc{number / 10 + random() % 8}, thread, number};
      ASSERT_TRUE(spool.Add(sample).ok());
      expected[thread].push_back(sample);
    }
    ASSERT_TRUE(spool.Finish().ok());
    for (uint32_t thread = 0; thread < expected.size(); ++thread) {
      std::ranges::stable_sort(expected[thread], {}, &Spooled::at);
      EXPECT_EQ(spool.CountOf(thread), expected[thread].size());
      const std::vector<Spooled> samples = SamplesOf(spool, thread);
      ASSERT_EQ(samples.size(), expected[thread].size()) << buffered;
      for (size_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ(samples[i].at, expected[thread][i].at);
        EXPECT_EQ(samples[i].stack, expected[thread][i].stack);
      }
    }
    EXPECT_EQ(spool.CountOf(5), 0U);
    EXPECT_TRUE(SamplesOf(spool, 5).empty());
  }
}

TEST(SampleSpool, HasNoSamplesAtFirst) {
  SampleSpool spool;
  ASSERT_TRUE(spool.Finish().ok());
  EXPECT_EQ(spool.CountOf(0), 0U);
  EXPECT_TRUE(SamplesOf(spool, 0).empty());
}

}  // namespace
}  // namespace xenoscope::report
