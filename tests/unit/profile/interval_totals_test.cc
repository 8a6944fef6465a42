#include "profile/interval_totals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fake_recording.h"

namespace xenoscope::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DomainId kD2{2};

// A recording that begins at 100, with the accounts of a source that has lost nothing.
struct Growing : FakeRecording {
  Growing() {
    info.started = Tsc{100};
    info.streams.emplace_back();
  }
};

// Returns "DOMAIN COUNT" of each total.
std::vector<std::string> Counts(const absl::StatusOr<EventTotals>& totals) {
  EXPECT_TRUE(totals.ok()) << totals.status();
  std::vector<std::string> lines;
  for (const EventTotal& total : totals->totals) {
    EXPECT_EQ(total.kind, TotalKind::kEstimated);
    EXPECT_LE(total.low, total.count);
    EXPECT_GT(total.high, total.count);
    lines.push_back(fmt::format("{} {:.0f}", ToString(*total.domain), total.count));
  }
  return lines;
}

// The second sample was taken before 200 with a probability of a quarter.
TEST(IntervalTotalsTest, CountsEachSampleOnceInParts) {
  Growing made;
  IntervalTotals totals(TotalsBy::kDomain, {}, made.info.started);
  made.Sample(110, 120, 0x10);
  made.Sample(190, 230, 0x10);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{200})), ElementsAre("d1 1250"));
  made.Sample(210, 240, 0x10);
  made.Sample(500, 510, 0x10);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{300})), ElementsAre("d1 1750"));
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{400})), ElementsAre("d1 0"));
  made.info.stopped = Tsc{1'000'000'400};
  const auto rest = totals.Rest(made.Open());
  EXPECT_THAT(Counts(rest), ElementsAre("d1 1000"));
  EXPECT_DOUBLE_EQ(rest->seconds, 1);
}

TEST(IntervalTotalsTest, CountsWhatComesLate) {
  Growing made;
  IntervalTotals totals(TotalsBy::kDomain, {}, made.info.started);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{200})), IsEmpty());
  made.Sample(110, 120, 0x10);
  made.Sample(150, 250, 0x10);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{300})), ElementsAre("d1 2000"));
}

TEST(IntervalTotalsTest, KeepsRowsUntilTheirDomainIsGone) {
  Growing made;
  IntervalTotals totals(TotalsBy::kDomain, {}, made.info.started);
  made.SampleOf(kD2, Mode::kUser, 110, 120, 0x10);
  made.Sample(110, 120, 0x10);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{200})), ElementsAre("d1 1000", "d2 1000"));
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{300})), ElementsAre("d1 0", "d2 0"));
  made.info.domains.front().died = true;
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{400})), ElementsAre("d2 0"));
}

TEST(IntervalTotalsTest, HasOnlyTheDomainsThatAreWanted) {
  Growing made;
  IntervalTotals totals(TotalsBy::kDomain, {kD2}, made.info.started);
  made.SampleOf(kD2, Mode::kUser, 110, 120, 0x10);
  made.Sample(110, 120, 0x10);
  EXPECT_THAT(Counts(totals.Next(made.Open(), Tsc{200})), ElementsAre("d2 1000"));
}

// Each unit of work is a domain's with the probability of a fifth. A sample is of every 100th unit,
// and is found by a drain of 330 units.
TEST(IntervalTotalsTest, IntervalsHold) {
  constexpr uint64_t kPeriod = 100;
  constexpr uint64_t kDrain = 330;
  constexpr uint64_t kLength = 50 * kPeriod + 17;
  constexpr int kIntervals = 4;
  constexpr int kRuns = 150;
  int covered = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 random(static_cast<uint64_t>(run));
    std::bernoulli_distribution is_ours(0.2);
    Growing made;
    made.info.events[0].period = kPeriod;
    std::array<double, kIntervals> ours{};
    for (uint64_t unit = 1; unit < kIntervals * kLength; ++unit) {
      const bool own = is_ours(random);
      ours.at(unit / kLength) += own ? 1 : 0;
      const uint64_t drain = unit / kDrain * kDrain;
      if (unit % kPeriod != 0) continue;
      made.SampleOf(own ? kD1 : kD2, Mode::kUser, drain, drain + kDrain, 0x10);
    }
    const recording::Recording recording = made.Open();
    IntervalTotals totals(TotalsBy::kDomain, {kD1}, Tsc{0});
    for (int i = 0; i < kIntervals; ++i) {
      const auto interval = totals.Next(recording, Tsc{kLength * static_cast<uint64_t>(i + 1)});
      ASSERT_TRUE(interval.ok());
      ASSERT_EQ(interval->totals.size(), 1U);
      const EventTotal& total = interval->totals.front();
      const double truth = ours.at(static_cast<size_t>(i));
      if (total.low <= truth && truth <= total.high) ++covered;
    }
  }
  EXPECT_GT(covered, 0.93 * kRuns * kIntervals);
  EXPECT_LT(covered, 0.99 * kRuns * kIntervals);
}

}  // namespace
}  // namespace xenoscope::profile
