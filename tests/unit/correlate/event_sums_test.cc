#include "correlate/event_sums.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace xenoscope::correlate {
namespace {

constexpr EventRatio kIpc{.numerator = 1, .denominator = 0, .scale = 1};

TEST(EventSums, AddsUpRowsAndClusters) {
  EventSums sums(2);
  sums.Add(0, 0, 2);
  sums.Add(0, 1, 3);
  sums.Add(1, 0, 1);
  sums.EndCluster();
  sums.Add(0, 1, 1);
  sums.EndCluster();
  sums.EndCluster();  // without a sample: no cluster
  EXPECT_EQ(sums.Samples(0, 1), 4);
  EXPECT_EQ(sums.Samples(7, 1), 0);
  EXPECT_EQ(sums.AllSamples(0), 3);
  const EventPair pair = sums.PairOf(0, kIpc);
  EXPECT_EQ(pair.a, 4);
  EXPECT_EQ(pair.b, 2);
  EXPECT_EQ(pair.aa, 10);
  EXPECT_EQ(pair.ab, 6);
  EXPECT_EQ(pair.bb, 4);
  EXPECT_EQ(pair.am, 9);  // the row's 3 of the one event, all 3 of the other
  EXPECT_EQ(pair.bm, 6);
  EXPECT_EQ(pair.n, 4);
  EXPECT_EQ(pair.mm, 9);
  EXPECT_EQ(pair.clusters, 2U);
}

TEST(EventSums, AllRowsTogetherAreOneRow) {
  EventSums sums(2);
  for (const uint32_t row : {0U, 1U, 0U}) {
    sums.Add(row, 0, 1);
    sums.Add(row, 1, 2);
    sums.EndCluster();
  }
  const EventPair all = sums.PairOf({}, kIpc);
  EXPECT_EQ(all.a, all.n);
  EXPECT_EQ(all.ab, all.nm);
  EXPECT_EQ(sums.PairOf(9, kIpc).b, 0);
}

// One sample in each cluster.
constexpr EventPair kIndependent{.a = 100,
                                 .b = 400,
                                 .n = 1000,
                                 .m = 1000,
                                 .aa = 100,
                                 .bb = 400,
                                 .an = 100,
                                 .bm = 400,
                                 .nn = 1000,
                                 .mm = 1000,
                                 .clusters = 2000};

// The variance is 1/a + 1/b, but for the m / (m - 1) of few clusters.
TEST(LogRatioVariance, OfIndependentSamplesIsThatOfPoisson) {
  EXPECT_NEAR(LogRatioVariance(kIndependent), 1.0 / 100 + 1.0 / 400, 1e-5);
}

// ... and less what is known of the sums of all rows.
TEST(LogRatioVariance, OfPartsOfKnownSumsIsBinomial) {
  EventPair pair = kIndependent;
  pair.complete = true;
  EXPECT_NEAR(LogRatioVariance(pair), 0.9 / 100 + 0.6 / 400, 1e-5);
}

// In each cluster there are ten samples of the one event or none, and as many of the other: they
// say nothing of each event's sum, but all of the ratio.
TEST(LogRatioVariance, CommonClustersCancel) {
  const EventPair pair{.a = 1000,
                       .b = 1000,
                       .n = 2000,
                       .m = 2000,
                       .aa = 10'000,
                       .ab = 10'000,
                       .bb = 10'000,
                       .clusters = 200};
  EXPECT_NEAR(LogRatioVariance(pair), 2.0 / 1000, 1e-9);
}

TEST(LogRatioVariance, KnowsNoSumBetterThanToASample) {
  EventPair pair{.a = 10, .b = 20, .n = 10, .m = 20, .clusters = 1};
  pair.complete = true;
  EXPECT_NEAR(LogRatioVariance(pair), 1.0 / 100 + 1.0 / 400, 1e-12);
}

TEST(EstimateRatio, IsScaled) {
  const RatioEstimate estimate = EstimateRatio({.a = 50, .b = 200, .n = 50, .m = 200}, 3);
  ASSERT_TRUE(estimate.value && estimate.high);
  EXPECT_DOUBLE_EQ(*estimate.value, 0.75);
  EXPECT_LT(estimate.low, 0.75);
  EXPECT_GT(*estimate.high, 0.75);
}

TEST(EstimateRatio, OfNoSamplesIsUnknown) {
  const RatioEstimate estimate = EstimateRatio({}, 1);
  EXPECT_FALSE(estimate.value);
  EXPECT_FALSE(estimate.high);
  EXPECT_EQ(estimate.low, 0);
}

// Wilson's upper end for 0 of 10 is 0.2775.
TEST(EstimateRatio, OfNoneOfTenHasAnUpperEnd) {
  const RatioEstimate estimate = EstimateRatio({.b = 10, .n = 100, .m = 100}, 1);
  EXPECT_EQ(estimate.value, 0);
  EXPECT_EQ(estimate.low, 0);
  ASSERT_TRUE(estimate.high);
  EXPECT_NEAR(*estimate.high, 0.2775328 / (1 - 0.2775328), 1e-6);
}

TEST(EstimateRatio, WithoutDenominatorHasALowerEndAlone) {
  const RatioEstimate estimate = EstimateRatio({.a = 10, .n = 100, .m = 100}, 1);
  EXPECT_FALSE(estimate.value);
  EXPECT_FALSE(estimate.high);
  EXPECT_NEAR(estimate.low, 0.7224672 / 0.2775328, 1e-5);
}

// A machine whose functions have known numbers of instructions per cycle. Counters of cycles and of
// instructions give a sample each time they have counted a period.
class Machine {
 public:
  static constexpr size_t kFunctions = 12;
  static constexpr double kCyclesPerSample = 1000;
  static constexpr double kInstructionsPerSample = 700;

  explicit Machine(uint64_t seed) : random_(seed) {
    std::uniform_real_distribution<double> part(0, 1);
    next_cycle_ = part(random_) * kCyclesPerSample;
    next_instruction_ = part(random_) * kInstructionsPerSample;
  }

  // Runs a function for a random number of cycles of this mean, with so many instructions in each.
  void Run(uint32_t function, double mean, double ipc) {
    const double cycles = std::exponential_distribution<double>(1 / mean)(random_);
    cycles_[function] += cycles;
    instructions_[function] += cycles * ipc;
    for (next_cycle_ -= cycles; next_cycle_ < 0; next_cycle_ += kCyclesPerSample) {
      sums.Add(function, 0, 1);
    }
    for (next_instruction_ -= cycles * ipc; next_instruction_ < 0;
         next_instruction_ += kInstructionsPerSample) {
      sums.Add(function, 1, 1);
    }
  }
  // Returns the instructions per cycle that the function really had.
  [[nodiscard]] double IpcOf(uint32_t function) const {
    return instructions_.at(function) / cycles_.at(function);
  }
  std::mt19937_64& random() { return random_; }

  EventSums sums{2};

 private:
  std::mt19937_64 random_;
  double next_cycle_ = 0;
  double next_instruction_ = 0;
  std::array<double, kFunctions> cycles_{};
  std::array<double, kFunctions> instructions_{};
};

// How often intervals hold the truth.
struct Coverage {
  double rows = 0;
  double covered = 0;

  void Add(EventPair pair, bool complete, double truth) {
    pair.complete = complete;
    const RatioEstimate ratio =
        EstimateRatio(pair, Machine::kInstructionsPerSample / Machine::kCyclesPerSample);
    if (pair.a + pair.b < 5) return;
    rows += 1;
    if (ratio.low <= truth && (!ratio.high || truth <= *ratio.high)) covered += 1;
  }
  [[nodiscard]] double Part() const { return covered / rows; }
};

// Functions alternate many times within a sampling period. They have parts of 1/2, 1/4, ... of the
// time, and 0.3 to 3 instructions per cycle.
TEST(EstimateRatio, IntervalsHoldWhereFunctionsAlternate) {
  Coverage complete;
  Coverage not_complete;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Machine machine(seed);
    std::geometric_distribution<uint32_t> choose(0.5);
    for (int slice = 0; slice < 400; ++slice) {
      for (int piece = 0; piece < 150; ++piece) {
        const uint32_t f = std::min<uint32_t>(choose(machine.random()), Machine::kFunctions - 1);
        machine.Run(f, 20, 0.3 * std::pow(10.0, f % 4 / 3.0));
      }
      machine.sums.EndCluster();
    }
    for (uint32_t f = 0; f < Machine::kFunctions; ++f) {
      complete.Add(machine.sums.PairOf(f, kIpc), true, machine.IpcOf(f));
      if (f > 2) not_complete.Add(machine.sums.PairOf(f, kIpc), false, machine.IpcOf(f));
    }
  }
  EXPECT_GT(complete.rows, 1000);
  EXPECT_GT(complete.Part(), 0.93);
  EXPECT_LT(complete.Part(), 0.97);
  // Of small parts it hardly matters whether sums are known.
  EXPECT_GT(not_complete.Part(), 0.93);
  EXPECT_LT(not_complete.Part(), 0.97);
}

// A timeslice is mostly one function, whose instructions per cycle differ from slice to slice: the
// timeslices are what was drawn. The truth is the function's own, of any number of timeslices.
TEST(EstimateRatio, IntervalsHoldWhereTimeslicesDiffer) {
  Coverage coverage;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Machine machine(seed);
    std::uniform_int_distribution<uint32_t> choose(0, 3);
    std::uniform_real_distribution<double> factor(0.2, 1.8);
    for (int slice = 0; slice < 400; ++slice) {
      const uint32_t f = choose(machine.random());
      machine.Run(f, 8000, (1 + f) * factor(machine.random()));
      machine.Run(4 + f, 500, 1);
      machine.sums.EndCluster();
    }
    for (uint32_t f = 0; f < 4; ++f) {
      coverage.Add(machine.sums.PairOf(f, kIpc), true, 1 + f);
    }
  }
  EXPECT_GT(coverage.Part(), 0.93);
  EXPECT_LT(coverage.Part(), 0.97);
}

}  // namespace
}  // namespace xenoscope::correlate
