#include "correlate/transition_cost.h"

#include <gtest/gtest.h>

#include <cmath>

namespace xenoscope::correlate {
namespace {

constexpr VcpuRef kD1{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2{DomainId{2}, VcpuId{0}};
constexpr VcpuRef kD3{DomainId{3}, VcpuId{0}};

// A vCPU that ran a million cycles, 300,000 of them from VMEXIT to VMENTRY, with 100 stays in its
// guest. Each of its samples is a cluster.
VcpuModes Modes(int in_xen, int in_guest, double stays = 100) {
  VcpuModes modes{.cycles = 1e6, .xen_cycles = 3e5, .stays = stays, .samples = {}};
  for (int i = 0; i < in_xen; ++i) modes.samples.AddCluster(1, 1);
  for (int i = 0; i < in_guest; ++i) modes.samples.AddCluster(0, 1);
  return modes;
}

TEST(TransitionCosts, IsWhatSamplesHaveOfXenBeyondTheTrace) {
  // 0.4 of the samples: 400,000 cycles in Xen, so that 100,000 are in 100 transitions.
  const TransitionCosts costs({{kD1, Modes(4000, 6000)}});
  EXPECT_NEAR(costs.CostOf(kD1), 1000, 1);
  // The standard error of 0.4 in 10,000 samples is 0.0049, or 49 cycles for each stay.
  EXPECT_NEAR(std::sqrt(costs.Variance({{kD1, 1}})), 49, 1);
  EXPECT_NEAR(std::sqrt(costs.Variance({{kD1, -100}})), 4900, 100);
}

TEST(TransitionCosts, IsNeverNegative) {
  const TransitionCosts costs({{kD1, Modes(2000, 8000)}});
  EXPECT_EQ(costs.CostOf(kD1), 0);
  EXPECT_GT(costs.Variance({{kD1, 1}}), 0);
}

// A clock that is not even can have too many samples in Xen.
TEST(TransitionCosts, IsAtMostTheMedianOfStays) {
  VcpuModes modes = Modes(6000, 4000);
  modes.median_stay = 1200;
  EXPECT_NEAR(TransitionCosts({{kD1, modes}}).CostOf(kD1), 1200, 1);
  // Those of other vCPUs do not make it longer.
  VcpuModes other = Modes(6000, 4000);
  EXPECT_LE(TransitionCosts({{kD1, modes}, {kD2, other}}).CostOf(kD1), 1200);
}

TEST(TransitionCosts, IsUnknownWithoutSamplesInXen) {
  const TransitionCosts costs({{kD1, Modes(0, 10000)}});
  EXPECT_EQ(costs.CostOf(kD1), 0);
  EXPECT_EQ(costs.Variance({{kD1, 1}}), 0);
}

TEST(TransitionCosts, OfVcpusThatAgreeIsPooled) {
  const TransitionCosts costs(
      {{kD1, Modes(4020, 5980)}, {kD2, Modes(3980, 6020)}, {kD3, Modes(0, 0)}});
  EXPECT_NEAR(costs.CostOf(kD1), 1000, 1);
  EXPECT_EQ(costs.CostOf(kD1), costs.CostOf(kD2));
  EXPECT_EQ(costs.CostOf(kD3), costs.CostOf(kD2));  // has no samples
  // One error for all, which cancels where one has what the other has not.
  EXPECT_NEAR(std::sqrt(costs.Variance({{kD1, 1}, {kD2, 1}})), 2 * 49 / std::sqrt(2), 1);
  EXPECT_NEAR(costs.Variance({{kD1, 1}, {kD2, -1}}), 0, 1);
}

TEST(TransitionCosts, OfVcpusThatDifferIsTheirOwn) {
  const TransitionCosts costs({{kD1, Modes(4000, 6000)}, {kD2, Modes(6000, 4000)}});
  EXPECT_NEAR(costs.CostOf(kD1), 1000, 10);
  EXPECT_NEAR(costs.CostOf(kD2), 3000, 10);
}

TEST(TransitionCosts, OfAGuestThatHardlyExitsIsHardlyUncertain) {
  // One stay in a million cycles: samples alone would allow 49,000 cycles, what is known before
  // them 10,000.
  const TransitionCosts costs({{kD1, Modes(3000, 7000, 1)}});
  EXPECT_LT(std::sqrt(costs.Variance({{kD1, 1}})), 10000);
}

}  // namespace
}  // namespace xenoscope::correlate
