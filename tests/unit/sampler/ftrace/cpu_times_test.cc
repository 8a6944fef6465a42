#include "sampler/ftrace/cpu_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace xenoscope::sampler {
namespace {

using recording::CpuTimesEntry;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kStep = recording::kCpuTimesStep;

TEST(CpuTimes, AreThoseOfCpus) {
  const std::vector<CpuTimesEntry> cpus = ParseCpuTimes(
      "cpu  9 9 9 9 9 9 9 9 9 9\n"
      "cpu0 1 2 3 40 5 6 7 80 100 200\n"
      "cpu3 1 0 0 0 0 0 0 0\n"
      "intr 12 0 0 0 0 0 0 0 0\n");
  EXPECT_THAT(cpus, ElementsAre(CpuTimesEntry{.cpu = 0,
                                              .busy = 19 * kStep,
                                              .idle = 40 * kStep,
                                              .iowait = 5 * kStep,
                                              .steal = 80 * kStep},
                                CpuTimesEntry{.cpu = 3, .busy = kStep}));
}

TEST(CpuTimes, OtherLinesArePassedOver) {
  for (const char* const text :
       {"", "cpu0 1 2 3 4 5 6 7 8", "cpu0 1 2 3 4 5 6 7\n", "cpu 1 2 3 4 5 6 7 8\n",
        "cpux 1 2 3 4 5 6 7 8\n", "cpu0 1 2 3 4 5 6 7 -8\n", "cpu99999999999 1 2 3 4 5 6 7 8\n"}) {
    EXPECT_THAT(ParseCpuTimes(text), IsEmpty()) << text;
  }
}

TEST(CpuTimes, ReadsThisLinux) {
  uint64_t tsc = 0;
  const auto cpus = ReadCpuTimes([&tsc] { return Tsc{++tsc}; });
  ASSERT_FALSE(cpus.empty());
  EXPECT_EQ(cpus[0].before, 1U);
  EXPECT_EQ(cpus[0].after, 2U);
  EXPECT_GT(cpus[0].busy, 0U);
  EXPECT_THAT(ReadCpuTimes([] { return Tsc{}; }, "/does/not/exist"), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::sampler
