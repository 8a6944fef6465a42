#include "report/timeline/time_bins.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace xenoscope::report {
namespace {

TEST(PcpuBin, NamesTheVcpuThatRanLongest) {
  // None of three vCPUs has half of the time, and they take turns.
  PcpuBin bin;
  for (int turn = 0; turn < 10; ++turn) {
    bin.Add(7, 30);
    bin.Add(8, 40);
    bin.Add(9, 30);
  }
  EXPECT_EQ(bin.LongestVcpu(), 8U);
  EXPECT_EQ(bin.busy(), 1000);
}

TEST(PcpuBin, NamesAVcpuWithMoreThanAnEighthAmongMany) {
  PcpuBin bin;
  for (uint32_t turn = 0; turn < 100; ++turn) {
    for (uint32_t vcpu = 0; vcpu < 50; ++vcpu) bin.Add(vcpu, 1);
    bin.Add(50, 20);
  }
  EXPECT_EQ(bin.LongestVcpu(), 50U);
  EXPECT_EQ(bin.busy(), 7000);
}

TEST(PcpuBin, MergesWithAnother) {
  PcpuBin first;
  first.Add(1, 40);
  first.Add(2, 60);
  PcpuBin second;
  second.Add(1, 50);
  second.Add(3, 45);
  first.Merge(second);
  EXPECT_EQ(first.LongestVcpu(), 1U);
  EXPECT_EQ(first.busy(), 195);
  first.Merge(PcpuBin());
  EXPECT_EQ(first.LongestVcpu(), 1U);
  EXPECT_EQ(PcpuBin().LongestVcpu(), 0U);
}

}  // namespace
}  // namespace xenoscope::report
