#include "correlate/em_refinement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;

constexpr VcpuRef kVcpu{DomainId{1}, VcpuId{0}};
constexpr Context kCpuid{ContextKind::kExit, false, trace::kVmexitCpuid};
constexpr Context kIoio{ContextKind::kExit, false, trace::kVmexitIoio};
constexpr Context kMsr{ContextKind::kExit, false, trace::kVmexitMsr};

// Each address is a function.
class Addresses : public Resolver {
 public:
  FunctionId Resolve(DomainId, Mode, Address address) override {
    return {static_cast<uint32_t>(address)};
  }
  const Function& Describe(FunctionId) const override { return function_; }
  std::vector<Frame> Inlined(DomainId, Mode, Address) override { return {}; }

 private:
  Function function_;
};

// Adds up what it is given.
class Sums : public PlacingObserver {
 public:
  void OnPlaced(const PlacedSample& placed) override {
    double sum = 0;
    for (const Place& place : placed.places) {
      const double all = place.weight * static_cast<double>(placed.count);
      const std::pair row(placed.address, place.context.reason);
      weights[row] += all;
      by_bracket[{row, placed.cluster}] += all;
      squares[{placed.address, place.context.reason}] += place.weight * place.weight;
      sum += place.weight;
    }
    sums.push_back(sum);
    addresses.push_back(placed.address);
  }
  void OnUnplaced(const recording::Sample&, UnplacedReason) override { ++unplaced; }
  void OnTraced(VcpuRef, Context, ContextTime time) override { traced += time.cycles; }

  using Row = std::pair<Address, uint32_t>;
  double BracketSquares(Row row) const {
    double sum = 0;
    for (const auto& [key, weight] : by_bracket) {
      if (key.first == row) sum += weight * weight;
    }
    return sum;
  }

  std::map<Row, double> weights;
  std::map<std::pair<Row, uint64_t>, double> by_bracket;
  std::map<Row, double> squares;
  std::vector<double> sums;
  std::vector<Address> addresses;
  uint64_t unplaced = 0;
  Cycles traced = 0;
};

class EmRefinementTest : public testing::Test {
 protected:
  void Add(Address function, const std::vector<Place>& places) {
    recording::Sample sample;
    sample.vcpu = kVcpu;
    sample.mode = Mode::kXen;
    sample.address = function;
    refiner_.OnPlaced({&sample, kVcpu, function, Placement::kBracketed, ++run_, places});
  }
  // One of several samples of one bracket, which can have been in the same places.
  void AddOfBracket(EmRefiner& refiner, Address function, uint64_t bracket,
                    const std::vector<Place>& places) {
    recording::Sample sample;
    sample.vcpu = kVcpu;
    sample.mode = Mode::kXen;
    sample.address = function;
    refiner.OnPlaced({&sample,
                      kVcpu,
                      function,
                      Placement::kBracketed,
                      bracket,
                      places,
                      std::nullopt,
                      {},
                      bracket});
  }
  // A sample of another event.
  void AddOfEvent(uint16_t event, Address function, const std::vector<Place>& places) {
    recording::Sample sample;
    sample.vcpu = kVcpu;
    sample.mode = Mode::kXen;
    sample.address = function;
    sample.event = event;
    refiner_.OnPlaced({&sample, kVcpu, function, Placement::kBracketed, ++run_, places});
  }
  static Place In(Context context, double weight) { return {context, PcpuId{0}, weight}; }

  Addresses resolver_;
  Sums sums_;
  EmRefiner refiner_{{}, resolver_, sums_};
  uint64_t run_ = 0;
};

// The worked example of docs/method.md, section 3.2: function 1 is seen surely under CPUID,
// function 2 surely under I/O; of each there is one more sample, of which the lengths tell nothing.
// Function 1 is under CPUID alone in the one event, and function 2 in the other: what certain
// samples of an event say, they say of its own open samples.
TEST_F(EmRefinementTest, EventsAreRefinedEachByItself) {
  for (int i = 0; i < 30; ++i) {
    AddOfEvent(0, 1, {In(kCpuid, 1)});
    AddOfEvent(0, 2, {In(kIoio, 1)});
    AddOfEvent(1, 1, {In(kIoio, 1)});
    AddOfEvent(1, 2, {In(kCpuid, 1)});
  }
  for (int i = 0; i < 10; ++i) AddOfEvent(0, 1, {In(kCpuid, 0.5), In(kIoio, 0.5)});
  refiner_.Finish();
  EXPECT_NEAR((sums_.weights[{1, kCpuid.reason}]), 40, 0.1);
  EXPECT_NEAR((sums_.weights[{1, kIoio.reason}]), 30, 0.1);
}

TEST_F(EmRefinementTest, LearnsContextOfFunction) {
  for (int i = 0; i < 3; ++i) Add(1, {In(kCpuid, 1)});
  for (int i = 0; i < 3; ++i) Add(2, {In(kIoio, 1)});
  Add(1, {In(kCpuid, 0.5), In(kIoio, 0.5)});
  Add(2, {In(kCpuid, 0.5), In(kIoio, 0.5)});
  EXPECT_TRUE(sums_.sums.empty());  // held
  refiner_.Finish();
  EXPECT_NEAR((sums_.weights[{1, kCpuid.reason}]), 4, 0.05);
  EXPECT_NEAR((sums_.weights[{1, kIoio.reason}]), 0, 0.05);
  EXPECT_NEAR((sums_.weights[{2, kIoio.reason}]), 4, 0.05);
}

// Where nothing distinguishes two reasons, lengths decide, as they did.
TEST_F(EmRefinementTest, FallsBackToLengths) {
  for (int i = 0; i < 100; ++i) Add(1, {In(kCpuid, 0.7), In(kIoio, 0.3)});
  refiner_.Finish();
  EXPECT_NEAR((sums_.weights[{1, kCpuid.reason}]), 70, 1e-6);
  EXPECT_NEAR((sums_.weights[{1, kIoio.reason}]), 30, 1e-6);
}

// Samples of a bracket that are in one function come as one, with the same sums by function and
// context as one by one, and nearly the same squares by bracket.
TEST_F(EmRefinementTest, MergesIdenticalSamples) {
  Sums each;
  EmRefinementOptions apart;
  apart.each_sample = true;
  EmRefiner one_by_one(apart, resolver_, each);
  for (uint64_t bracket = 1; bracket <= 200; ++bracket) {
    const double a = 0.1 + static_cast<double>(bracket % 9) / 10;
    for (EmRefiner* refiner : {&refiner_, &one_by_one}) {
      for (int i = 0; i < 5; ++i) {
        AddOfBracket(*refiner, 1, bracket, {In(kCpuid, a), In(kIoio, 1 - a)});
        if (i % 2 == 0) AddOfBracket(*refiner, 2, bracket, {In(kCpuid, a), In(kIoio, 1 - a)});
      }
    }
  }
  refiner_.Finish();
  one_by_one.Finish();
  EXPECT_EQ(sums_.addresses.size(), 400U);
  EXPECT_EQ(each.addresses.size(), 1600U);
  for (const auto& [row, weight] : each.weights) {
    EXPECT_NEAR((sums_.weights[row]), weight, 1e-6 * weight);
    // By bracket the signs of five samples sum to other numbers than one sign of all.
    EXPECT_NEAR((sums_.BracketSquares(row)), each.BracketSquares(row),
                0.2 * each.BracketSquares(row));
  }
}

TEST_F(EmRefinementTest, ForwardsInOrder) {
  const recording::Sample sample;
  Add(3, {In(kCpuid, 1)});
  Add(1, {In(kCpuid, 0.5), In(kMsr, 0.5)});
  Add(2, {In(kMsr, 1)});
  refiner_.OnUnplaced(sample, UnplacedReason::kTraceLost);
  refiner_.OnTraced(kVcpu, kCpuid, {5});
  refiner_.Finish();
  EXPECT_THAT(sums_.addresses, ElementsAre(3, 1, 2));
  EXPECT_EQ(sums_.unplaced, 1U);
  EXPECT_EQ(sums_.traced, 5U);
}

// Samples of three reasons and four functions, of which lengths tell little: whatever the weights
// are, those of a sample sum to 1 and those of a function in a context are not less than nothing,
// also when samples are held in several lots; and the sum of their squares covers how far they are
// from the truth.
TEST_F(EmRefinementTest, WeightsCarryVariance) {
  const std::vector<Context> contexts = {kCpuid, kIoio, kMsr};
  const std::vector<std::vector<double>> truth = {
      {0.6, 0.2, 0.1, 0.1}, {0.1, 0.6, 0.2, 0.1}, {0.1, 0.1, 0.2, 0.6}};
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> length(0.1, 1);
  constexpr int kTrials = 200;
  constexpr int kSamples = 600;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Sums sums;
    EmRefinementOptions options;
    options.max_pending = trial % 2 == 0 ? 100'000 : 250;
    EmRefiner refiner(options, resolver_, sums);
    double expected = 0;
    for (int i = 0; i < kSamples; ++i) {
      std::vector<double> lengths = {length(random), length(random), length(random)};
      const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
      std::discrete_distribution<size_t> where(lengths.begin(), lengths.end());
      const size_t in = where(random);
      std::discrete_distribution<Address> which(truth[in].begin(), truth[in].end());
      recording::Sample sample;
      sample.vcpu = kVcpu;
      sample.mode = Mode::kXen;
      sample.address = which(random);
      std::vector<Place> places;
      for (size_t c = 0; c < contexts.size(); ++c)
        places.push_back(In(contexts[c], lengths[c] / all));
      expected += lengths[0] / all * truth[0][0];
      refiner.OnPlaced({&sample, kVcpu, sample.address, Placement::kBracketed,
                        static_cast<uint64_t>(i), places});
    }
    refiner.Finish();
    for (const double sum : sums.sums) ASSERT_NEAR(sum, 1, 1e-9);
    for (const auto& [place, weight] : sums.weights) ASSERT_GT(weight, -1e-6);
    const double estimate = sums.weights[{0, kCpuid.reason}];
    const double deviation = std::sqrt(sums.squares[{0, kCpuid.reason}]);
    covered += static_cast<int>(std::abs(estimate - expected) < 1.96 * deviation);
  }
  EXPECT_GT(covered, kTrials * 90 / 100);
  EXPECT_LT(covered, kTrials * 99 / 100);
}

// Three reasons that mix almost evenly wherever a sample can have been, as in long brackets, and
// functions that are of one of them, or of all: what little the lengths tell is not taken for more.
TEST_F(EmRefinementTest, IntervalsCoverWithSimilarLengths) {
  const std::vector<Context> contexts = {kCpuid, kIoio, kMsr};
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> length(0.3, 0.7);
  constexpr int kTrials = 60;
  constexpr int kSamples = 600;
  int rows = 0;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<std::vector<double>> truth(3, std::vector<double>(6, 0));
    for (size_t c = 0; c < 3; ++c) {
      std::vector<double> common = {0.3, 0.15, 0.05};
      std::shuffle(common.begin(), common.end(), random);
      std::ranges::copy(common, truth[c].begin());
      truth[c][3 + c] = 0.5;
    }
    Sums sums;
    EmRefiner refiner({}, resolver_, sums);
    std::vector<double> in_context(3, 0);
    for (int i = 0; i < kSamples; ++i) {
      std::vector<double> lengths = {length(random), length(random), length(random)};
      const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
      std::discrete_distribution<size_t> where(lengths.begin(), lengths.end());
      const std::vector<double>& of = truth[where(random)];
      std::discrete_distribution<Address> which(of.begin(), of.end());
      recording::Sample sample;
      sample.vcpu = kVcpu;
      sample.mode = Mode::kXen;
      sample.address = which(random);
      std::vector<Place> places;
      for (size_t c = 0; c < contexts.size(); ++c) {
        places.push_back(In(contexts[c], lengths[c] / all));
        in_context[c] += lengths[c] / all;
      }
      refiner.OnPlaced({&sample, kVcpu, sample.address, Placement::kBracketed,
                        static_cast<uint64_t>(i), places});
    }
    refiner.Finish();
    for (const double sum : sums.sums) ASSERT_NEAR(sum, 1, 1e-9);
    for (size_t c = 0; c < 3; ++c) {
      for (Address f = 0; f < 6; ++f) {
        if (truth[c][f] == 0) continue;
        const std::pair place(f, contexts[c].reason);
        const double off = sums.weights[place] - in_context[c] * truth[c][f];
        ++rows;
        covered += static_cast<int>(std::abs(off) < 1.96 * std::sqrt(sums.squares[place]));
      }
    }
  }
  EXPECT_GT(covered, rows * 90 / 100);
  EXPECT_LT(covered, rows * 99 / 100);
}

}  // namespace
}  // namespace xenoscope::correlate
