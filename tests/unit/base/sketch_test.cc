#include "base/sketch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace xenoscope {
namespace {

struct Weighted {
  uint64_t value = 0;
  uint64_t weight = 0;
};

// Returns the value at or below which the part of the weight lies, from all values.
uint64_t ExactPercentile(std::vector<Weighted> all, double part) {
  std::ranges::sort(all, {}, &Weighted::value);
  uint64_t total = 0;
  for (const Weighted& each : all) total += each.weight;
  const auto wanted = static_cast<uint64_t>(part * static_cast<double>(total));
  uint64_t passed = 0;
  for (const Weighted& each : all) {
    passed += each.weight;
    if (passed > wanted) return each.value;
  }
  return all.back().value;
}

void ExpectPercentiles(const Sketch& sketch, const std::vector<Weighted>& all) {
  for (const double part : {0.0, 0.05, 0.5, 0.95, 0.999}) {
    const auto exact = static_cast<double>(ExactPercentile(all, part));
    EXPECT_NEAR(static_cast<double>(sketch.Percentile(part)), exact, exact / 128) << part;
  }
}

// Returns lengths of many octaves, in no order.
std::vector<uint32_t> Lengths(size_t number) {
  std::minstd_rand random(7);
  std::vector<uint32_t> lengths(number);
  for (uint32_t& length : lengths) {
    length = static_cast<uint32_t>(random()) >> (random() % 31);
  }
  return lengths;
}

TEST(Sketch, EmptyHasNoValues) {
  const Sketch sketch;
  EXPECT_EQ(sketch.total(), 0U);
  EXPECT_EQ(sketch.max(), 0U);
  EXPECT_EQ(sketch.Percentile(0.5), 0U);
}

TEST(Sketch, IsExactBelow128) {
  Sketch sketch;
  for (uint64_t value = 0; value < 128; ++value) sketch.Add(value, 1);
  for (uint64_t value = 0; value < 128; ++value) {
    EXPECT_EQ(sketch.Percentile((static_cast<double>(value) + 0.5) / 128), value);
  }
}

TEST(Sketch, TakesTheLargestValuesAndWeights) {
  Sketch sketch;
  sketch.Add(~uint64_t{0}, 1);
  sketch.Add(0, uint64_t{1} << 62);
  EXPECT_EQ(sketch.total(), (uint64_t{1} << 62) + 1);
  EXPECT_EQ(sketch.max(), ~uint64_t{0});
  EXPECT_EQ(sketch.Percentile(0.5), 0U);
}

// The weights of one bucket outgrow 16 and then 32 bits, between others that stay small.
TEST(Sketch, KeepsWeightsWhenABucketOutgrowsItsBits) {
  Sketch sketch;
  std::vector<Weighted> all;
  for (const Weighted& each : std::vector<Weighted>{
           {90, 3}, {100, 65'535}, {100, 1}, {110, 65'536}, {100, ~uint32_t{0}}, {120, 7}}) {
    sketch.Add(each.value, each.weight);
    all.push_back(each);
    ExpectPercentiles(sketch, all);
  }
  EXPECT_EQ(sketch.Percentile(0.99999), 110U);
}

TEST(Sketch, FindsPercentilesOverValuesAndOverTime) {
  const std::vector<uint32_t> lengths = Lengths(3000);
  std::vector<Weighted> by_count;
  std::vector<Weighted> by_time;
  for (const uint32_t length : lengths) {
    by_count.push_back({length, 1});
    by_time.push_back({length, length});
  }
  Sketch counted;
  counted.AddAll(lengths, Weighting::kByCount);
  ExpectPercentiles(counted, by_count);
  Sketch timed;
  timed.AddAll(lengths, Weighting::kByTime);
  ExpectPercentiles(timed, by_time);
}

// In whatever way the lengths come together, the sketch is the same.
TEST(Sketch, IsTheSameAddedAtOnceOneByOneAndMerged) {
  const std::vector<uint32_t> lengths = Lengths(2000);
  for (const Weighting weighting : {Weighting::kByCount, Weighting::kByTime}) {
    Sketch at_once;
    at_once.AddAll(lengths, weighting);
    Sketch one_by_one;
    std::vector<Sketch> parts(7);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const uint64_t weight = weighting == Weighting::kByTime ? lengths[i] : 1;
      one_by_one.Add(lengths[i], weight);
      parts[i * i % parts.size()].Add(lengths[i], weight);
    }
    Sketch merged;
    for (const Sketch& part : parts) merged.Merge(part);
    for (const Sketch* other : {&std::as_const(one_by_one), &std::as_const(merged)}) {
      EXPECT_EQ(other->total(), at_once.total());
      EXPECT_EQ(other->max(), at_once.max());
      for (int permille = 0; permille <= 1000; ++permille) {
        ASSERT_EQ(other->Percentile(permille / 1000.0), at_once.Percentile(permille / 1000.0));
      }
    }
  }
}

}  // namespace
}  // namespace xenoscope
