#include "correlate/stratum_unions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace xenoscope::correlate {
namespace {

constexpr VcpuRef kVcpu{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kOther{DomainId{2}, VcpuId{0}};

// What a cluster has in two strata, and of the row.
struct Cluster {
  double first = 0;
  double second = 0;
  double row = 0;
};
const std::vector<Cluster> kClusters = {{4, 0, 3}, {1.5, 1.5, 2}, {0, 5, 1}, {2, 3, 1}, {0, 2, 0}};

class StratumUnionsTest : public testing::Test {
 protected:
  StratumUnionsTest() {
    first_ = unions_.AddStratum(kVcpu);
    second_ = unions_.AddStratum(kVcpu);
    row_ = unions_.UnionNumber(7, kVcpu);
    for (const Cluster& cluster : kClusters) {
      const std::vector<StratumUnions::Amount> strata = {{second_, cluster.second},
                                                         {first_, cluster.first}};
      const std::vector<StratumUnions::Amount> rows = {{row_, cluster.row}};
      unions_.AddCluster(kVcpu, strata, rows);
    }
  }
  // docs/method.md, section 5.2, cluster by cluster.
  static double ByHand(double first, double second) {
    double sum = 0;
    for (const Cluster& c : kClusters) {
      const double residue = c.row - first * c.first - second * c.second;
      sum += residue * residue;
    }
    return sum * 5 / 4;
  }

  StratumUnions unions_;
  uint32_t first_ = 0;
  uint32_t second_ = 0;
  uint32_t row_ = 0;
};

TEST_F(StratumUnionsTest, VarianceIsOfResidualsOverAllStrata) {
  const std::vector<StratumUnions::Share> shares = {{first_, 0.6}, {second_, 0.2}};
  EXPECT_NEAR(unions_.Variance(row_, shares), ByHand(0.6, 0.2), 1e-12);
  // A stratum that the row has nothing in takes no part.
  const std::vector<StratumUnions::Share> one = {{first_, 0.7}};
  EXPECT_NEAR(unions_.Variance(row_, one), ByHand(0.7, 0), 1e-12);
}

TEST_F(StratumUnionsTest, PlainVarianceUsesOneShare) {
  EXPECT_EQ(unions_.SamplesOfVcpu(row_), 19);
  EXPECT_NEAR(unions_.PlainVariance(row_, 7.0 / 19), ByHand(7.0 / 19, 7.0 / 19), 1e-12);
}

TEST_F(StratumUnionsTest, SeparatesVcpus) {
  EXPECT_EQ(unions_.AddStratum(kOther), 0U);
  EXPECT_NE(unions_.UnionNumber(7, kOther), row_);
  EXPECT_EQ(unions_.UnionNumber(7, kVcpu), row_);
}

TEST_F(StratumUnionsTest, ExcessStrataAreIndependent) {
  for (uint32_t i = 2; i < StratumUnions::kMaxStrata; ++i) EXPECT_EQ(unions_.AddStratum(kVcpu), i);
  EXPECT_EQ(unions_.AddStratum(kVcpu), StratumUnions::kNone);
}

}  // namespace
}  // namespace xenoscope::correlate
