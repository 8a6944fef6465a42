#include "correlate/cross_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace xenoscope::correlate {
namespace {

constexpr VcpuRef kD1{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2V1{DomainId{2}, VcpuId{1}};
constexpr Cycles kTimeslice = 3'000'000;

// Timeslices of one length, back to back, in which samples at known instants are to be put.
CrossChecks Timeslices(int count) {
  CrossChecks checks;
  for (int i = 0; i < count; ++i) {
    const Tsc begin{static_cast<uint64_t>(i) * kTimeslice};
    checks.AddTimeslice(0, kD1, kTimeslice);
    // In two pieces: what is added of time does not depend on how it is cut.
    checks.AddTime(0, kD1, {begin, begin + 1'234'567}, begin);
    checks.AddTime(0, kD1, {begin + 1'234'567, begin + kTimeslice}, begin);
  }
  return checks;
}

PlacingCheck Only(const CrossChecks& checks) {
  const auto all = checks.Conclude();
  EXPECT_EQ(all.size(), 1U);
  return all.front();
}

TEST(CrossChecks, RandomInstantsAreNotAliased) {
  CrossChecks checks = Timeslices(100);
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) checks.AddExact(0, kD1, random() % kTimeslice);
  const PlacingCheck check = Only(checks);
  EXPECT_EQ(check.exact, 5000U);
  EXPECT_LT(check.distance, 0.03);
  EXPECT_FALSE(check.IsAliased());
}

// The time of an age is the same, in however many ranges it comes.
TEST(CrossChecks, CutsOfTimeMakeNoDifference) {
  std::mt19937_64 random(1);
  CrossChecks whole;
  CrossChecks cut;
  for (uint64_t i = 0; i < 200; ++i) {
    const Tsc begin{i * kTimeslice};
    whole.AddTime(0, kD1, {begin, begin + kTimeslice}, begin);
    for (Cycles at = 0; at < kTimeslice;) {
      const Cycles end = std::min(kTimeslice, at + random() % (kTimeslice >> random() % 16));
      cut.AddTime(0, kD1, {begin + at, begin + end}, begin);
      at = end;
    }
    const Cycles age = random() % kTimeslice;
    whole.AddExact(0, kD1, age * age / kTimeslice);
    cut.AddExact(0, kD1, age * age / kTimeslice);
  }
  EXPECT_GT(Only(whole).distance, 0.1);
  EXPECT_EQ(Only(cut).distance, Only(whole).distance);
}

TEST(CrossChecks, PeriodOfWorkloadIsAliased) {
  // The sampling clock comes round a hair later with every timeslice.
  CrossChecks checks = Timeslices(1000);
  for (uint64_t i = 0; i < 1000; ++i) checks.AddExact(0, kD1, 200'000 + i);
  EXPECT_TRUE(Only(checks).IsAliased());
}

// A guest that leaves for Xen all the time while its timeslices are young has few NMI exits there.
TEST(CrossChecks, UnknownInstantsMayExplainAliasing) {
  CrossChecks checks = Timeslices(1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    checks.AddExact(0, kD1, kTimeslice / 3 + i * 2'001'001 % (kTimeslice - kTimeslice / 3));
  }
  EXPECT_TRUE(Only(checks).IsAliased());
  for (int i = 0; i < 500; ++i) checks.AddMissed(0, kD1);
  EXPECT_FALSE(Only(checks).IsAliased());
}

TEST(CrossChecks, IncommensuratePeriodIsNotAliased) {
  CrossChecks checks = Timeslices(1000);
  for (uint64_t i = 0; i < 1000; ++i) checks.AddExact(0, kD1, i * 2'001'001 % kTimeslice);
  EXPECT_FALSE(Only(checks).IsAliased());
}

TEST(CrossChecks, FewSamplesAreInconclusive) {
  CrossChecks checks = Timeslices(10);
  for (uint64_t i = 0; i < 99; ++i) checks.AddExact(0, kD1, 200'000);
  EXPECT_FALSE(Only(checks).IsAliased());
}

TEST(CrossChecks, MeanTimesliceIsLengthBiased) {
  CrossChecks checks;
  checks.AddTimeslice(0, kD1, 1000);
  checks.AddTimeslice(0, kD1, 3000);
  checks.AddOther(0, kD1);
  EXPECT_DOUBLE_EQ(Only(checks).timeslice, 0.25 * 1000 + 0.75 * 3000);
}

TEST(CrossChecks, BracketsAreLongerThanTimeslices) {
  CrossChecks checks = Timeslices(1);
  for (int i = 0; i < 100; ++i) checks.AddBracketed(0, kD1, kTimeslice);
  EXPECT_FALSE(Only(checks).HasLongBrackets());
  checks.AddBracketed(0, kD1, kTimeslice + 1000);
  EXPECT_TRUE(Only(checks).HasLongBrackets());
}

TEST(CrossChecks, CountsClockedSamples) {
  CrossChecks checks = Timeslices(1);
  checks.AddClocked(0, kD1, 600);
  checks.AddClocked(0, kD1, 1000);
  EXPECT_EQ(Only(checks).samples, 2U);
  EXPECT_EQ(Only(checks).clocked, 2U);
  EXPECT_EQ(Only(checks).clock_error, 400);
  EXPECT_EQ(Only(checks).bracketed, 0U);
}

TEST(CrossChecks, ReportsMoreThanOnePercentImpossible) {
  CrossChecks checks = Timeslices(1);
  for (int i = 0; i < 297; ++i) checks.AddOther(0, kD1);
  for (int i = 0; i < 3; ++i) checks.AddImpossible(0, kD1);
  EXPECT_FALSE(Only(checks).HasImpossibleSamples());
  checks.AddImpossible(0, kD1);
  EXPECT_TRUE(Only(checks).HasImpossibleSamples());
}

TEST(CrossChecks, ChecksAreByDomain) {
  CrossChecks checks = Timeslices(1);
  checks.AddImpossible(0, kD1);
  checks.AddOther(7, kD2V1);
  checks.AddTimeslice(8, {DomainId{3}, VcpuId{0}}, 5);  // has no samples
  const auto all = checks.Conclude();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].domain, DomainId{1});
  EXPECT_EQ(all[0].impossible, 1U);
  EXPECT_EQ(all[1].domain, DomainId{2});
  EXPECT_EQ(all[1].samples, 1U);
}

TEST(CrossChecks, BinsCoverAllAges) {
  CrossChecks checks;
  for (const Cycles age : {Cycles{0}, Cycles{1}, Cycles{255}, Cycles{1} << 40, ~Cycles{0}}) {
    checks.AddExact(0, kD1, age);
  }
  checks.AddTime(0, kD1, {Tsc{0}, Tsc{~uint64_t{0}}}, Tsc{0});
  EXPECT_EQ(Only(checks).exact, 5U);
}

}  // namespace
}  // namespace xenoscope::correlate
