#include "profile/event_totals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fake_recording.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DomainId kD2{2};

CountedPart Part(size_t event, uint32_t cpu, double count, double enabled = 100,
                 double running = 100) {
  return {event, kDom0, VcpuId{cpu}, true, count, enabled, running};
}

// Returns "DOMAIN VCPU EVENT COUNT KIND" of each total.
std::vector<std::string> Lines(const EventTotals& totals) {
  std::vector<std::string> lines;
  for (const EventTotal& total : totals.totals) {
    lines.push_back(fmt::format("{} {} {} {} {}", total.domain ? ToString(*total.domain) : "-",
                                total.vcpu ? std::to_string(total.vcpu->value) : "-",
                                totals.events[total.event].name, total.count,
                                ToString(total.kind)));
  }
  return lines;
}

EventTotals Counted(const std::vector<CountedPart>& parts, TotalsBy by) {
  EventTotals totals;
  totals.events = {{"cycles"}, {"instructions"}};
  AddCounted(parts, by, totals);
  return totals;
}

TEST(AddCountedTest, AddsUpCpus) {
  const std::vector<CountedPart> parts = {Part(0, 0, 10), Part(0, 1, 20), Part(1, 0, 5),
                                          Part(1, 1, 6)};
  EXPECT_THAT(Lines(Counted(parts, TotalsBy::kAll)),
              ElementsAre("- - cycles 30 exact", "- - instructions 11 exact"));
  EXPECT_THAT(Lines(Counted(parts, TotalsBy::kDomain)),
              ElementsAre("d0 - cycles 30 exact", "d0 - instructions 11 exact"));
  EXPECT_THAT(Lines(Counted(parts, TotalsBy::kVcpu)),
              ElementsAre("d0 0 cycles 10 exact", "d0 0 instructions 5 exact",
                          "d0 1 cycles 20 exact", "d0 1 instructions 6 exact"));
}

// The one CPU counted a quarter of the time, the other all of it.
TEST(AddCountedTest, ScalesEventsThatTookTurns) {
  const EventTotals totals = Counted({Part(0, 0, 10, 100, 25), Part(0, 1, 7)}, TotalsBy::kAll);
  EXPECT_THAT(Lines(totals), ElementsAre("- - cycles 47 scaled"));
  EXPECT_DOUBLE_EQ(totals.totals[0].measured, 0.625);
}

TEST(AddCountedTest, SaysWhatWasNotCounted) {
  CountedPart without_counter;
  without_counter.counted = false;
  EXPECT_THAT(Lines(Counted({without_counter, Part(1, 0, 0, 100, 0)}, TotalsBy::kAll)),
              ElementsAre("- - cycles 0 not counted", "- - instructions 0 not counted"));
  // A process that slept: nothing ran, and nothing was left out.
  EXPECT_THAT(Lines(Counted({Part(0, 0, 0, 0, 0)}, TotalsBy::kAll)),
              ElementsAre("- - cycles 0 exact"));
}

TEST(SetRatiosTest, DividesTotalsOfOneRow) {
  EventTotals totals =
      Counted({Part(0, 0, 10), Part(1, 0, 5), Part(0, 1, 0), Part(1, 1, 5)}, TotalsBy::kVcpu);
  EventComparison compared;
  compared.ratios = {{"ipc", "IPC", "instructions per cycle", false, {1, 0, 1}}};
  SetRatios(compared, totals);
  EXPECT_FALSE(totals.totals[0].ratio_column);
  ASSERT_TRUE(totals.totals[1].ratio_column);
  EXPECT_EQ(totals.totals[1].ratio.value, 0.5);
  EXPECT_FALSE(totals.totals[3].ratio_column);  // no cycles
}

// 30 samples of d1 and 10 of d2, of 1000 each.
TEST(EstimateTotalsTest, MultipliesSamplesByThePeriod) {
  FakeRecording made;
  for (int i = 0; i < 30; ++i) made.Sample(100, 110, 0x10);
  for (int i = 0; i < 10; ++i) made.SampleOf(kD2, Mode::kUser, 100, 110, 0x10);
  const recording::Recording recording = made.Open();
  const auto totals = EstimateTotals(recording, TotalsBy::kDomain, {});
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_THAT(Lines(*totals),
              ElementsAre("d1 - cycles 30000 estimated", "d2 - cycles 10000 estimated"));
  for (const EventTotal& total : totals->totals) {
    EXPECT_LT(total.low, total.count);
    EXPECT_GT(total.high, total.count);
  }
  EXPECT_THAT(Lines(*EstimateTotals(recording, TotalsBy::kDomain, {kD2})),
              ElementsAre("d2 - cycles 10000 estimated"));
  // What all domains have is known to one period.
  const auto all = EstimateTotals(recording, TotalsBy::kAll, {});
  ASSERT_THAT(all->totals, SizeIs(1));
  EXPECT_NEAR(all->totals[0].low, 40'000 - 1960, 1);
  EXPECT_NEAR(all->totals[0].high, 40'000 + 1960, 1);
}

TEST(EstimateTotalsTest, HasRatiosWithIntervals) {
  FakeRecording made;
  made.info.events = {EventOf("cycles", "pmu"), EventOf("instructions", "pmu")};
  made.info.events[1].period = 2000;
  for (int i = 0; i < 40; ++i) made.Sample(100, 110, 0x10, 0);
  for (int i = 0; i < 10; ++i) made.Sample(100, 110, 0x10, 1);
  const auto totals = EstimateTotals(made.Open(), TotalsBy::kVcpu, {});
  ASSERT_TRUE(totals.ok()) << totals.status();
  ASSERT_THAT(totals->totals, SizeIs(2));
  const EventTotal& instructions = totals->totals[1];
  EXPECT_EQ(instructions.count, 20'000);
  ASSERT_TRUE(instructions.ratio_column);
  EXPECT_DOUBLE_EQ(*instructions.ratio.value, 0.5);
  EXPECT_LT(instructions.ratio.low, 0.5);
  EXPECT_GT(*instructions.ratio.high, 0.5);
}

// The vCPU runs on pCPU 0 until 200, then on pCPU 1. The fourth sample is from where the trace does
// not say where it ran.
TEST(EstimateTotalsTest, PlacesSamplesOnPcpus) {
  FakeRecording made;
  made.info.started = Tsc{100};
  made.info.stopped = Tsc{1000};
  made.Sample(110, 111, 0x10);
  made.Sample(120, 121, 0x10);
  made.Sample(190, 230, 0x10);
  made.Sample(500, 501, 0x10);
  trace::TraceBuilder trace;
  trace.Window(0, {trace::Rec(trace::kRunnableToRunning, 100, {trace::kD1V0, 0}),
                   trace::Rec(trace::kRunningToRunnable, 200, {trace::kD1V0, 0})});
  trace.Window(1, {trace::Rec(trace::kRunnableToRunning, 200, {trace::kD1V0, 0}),
                   trace::Rec(trace::kRunningToBlocked, 400, {trace::kD1V0, 0}),
                   trace::Rec(trace::kBlockedToRunnable, 900, {trace::kD1V0, 0})});
  made.Trace(trace.bytes());
  made.Open();
  std::vector<std::string> warnings;
  TraceRequest request;
  request.path = made.Path();
  const auto input = OpenTraceInput(request, warnings);
  ASSERT_TRUE(input.ok()) << input.status();
  const auto totals = EstimateTotalsOfPcpus(*input);
  ASSERT_TRUE(totals.ok()) << totals.status();
  std::vector<std::string> lines;
  for (const EventTotal& total : totals->totals) {
    lines.push_back(fmt::format("{} {:.0f}", total.pcpu ? std::to_string(total.pcpu->value) : "-",
                                total.count));
  }
  // Of the third sample's 40 cycles 10 are on pCPU 0.
  EXPECT_THAT(lines, ElementsAre("- 1000", "0 2250", "1 750"));
  // z^2 (v x + 1 + p (1 - p)) + (v z^2 / 2)^2, with x of 4 samples and v = 1 - x / 4.
  const double zz = 1.959964 * 1.959964;
  const double v = 1 - 0.75 / 4;
  const double spread = std::sqrt(zz * (v * 0.75 + 1 + 0.25 * 0.75 + v * v * zz / 4));
  EXPECT_NEAR(totals->totals[2].high, 1000 * (0.75 + v * zz / 2 + spread), 1);
}

// A domain has every fifth unit of work, at random: its total of each run must be in the interval.
TEST(EstimateTotalsTest, IntervalsHold) {
  constexpr int kPeriod = 100;
  int covered = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 random(static_cast<uint64_t>(run));
    std::bernoulli_distribution is_ours(0.2);
    FakeRecording made;
    made.info.events[0].period = kPeriod;
    double ours = 0;
    for (int unit = 1; unit <= 100 * kPeriod; ++unit) {
      const bool own = is_ours(random);
      ours += own ? 1 : 0;
      if (unit % kPeriod == 0) made.SampleOf(own ? kD1 : kD2, Mode::kUser, 100, 110, 0x10);
    }
    const auto totals = EstimateTotals(made.Open(), TotalsBy::kDomain, {kD1});
    ASSERT_TRUE(totals.ok());
    ASSERT_THAT(totals->totals, SizeIs(1));
    if (totals->totals[0].low <= ours && ours <= totals->totals[0].high) ++covered;
  }
  EXPECT_GT(covered, 0.93 * kRuns);
  EXPECT_LT(covered, 0.98 * kRuns);
}

// 10, 12 and 14: the mean is 12, its standard error 2 / sqrt(3), and t of two degrees of
// freedom 4.303.
TEST(MeanOfRunsTest, HasStudentsInterval) {
  std::vector<EventTotals> runs;
  for (const double count : {10, 12, 14}) {
    runs.push_back(Counted({Part(0, 0, count)}, TotalsBy::kAll));
    runs.back().seconds = count;
  }
  const EventTotals mean = MeanOfRuns(runs);
  EXPECT_DOUBLE_EQ(mean.seconds, 12);
  ASSERT_THAT(mean.totals, SizeIs(1));
  EXPECT_DOUBLE_EQ(mean.totals[0].count, 12);
  EXPECT_NEAR(mean.totals[0].high - 12, 4.303 * 2 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(12 - mean.totals[0].low, 4.303 * 2 / std::sqrt(3), 1e-9);
  EXPECT_FALSE(MeanOfRuns({runs[0]}).totals[0].has_interval);
}

// With ten degrees of freedom the table has 2.228.
TEST(MeanOfRunsTest, FollowsTheTableOfStudentsT) {
  std::vector<EventTotals> runs(11);
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i] = Counted({Part(0, 0, i % 2 == 0 ? 100 : 101)}, TotalsBy::kAll);
  }
  const EventTotals mean = MeanOfRuns(runs);
  const double p = 5.0 / 11;
  const double error = std::sqrt(p * (1 - p) / 10);
  EXPECT_NEAR((mean.totals[0].high - mean.totals[0].count) / error, 2.228, 0.01);
}

// A domain may come or go between runs.
TEST(MeanOfRunsTest, CountsNoneInRunsWithoutTheRow) {
  const EventTotals one = Counted({Part(0, 1, 10)}, TotalsBy::kVcpu);
  const EventTotals two = Counted({Part(0, 0, 4), Part(0, 1, 20)}, TotalsBy::kVcpu);
  for (const auto& runs : {std::vector{one, two}, std::vector{two, one}}) {
    const EventTotals mean = MeanOfRuns(runs);
    ASSERT_THAT(mean.totals, SizeIs(2));
    EXPECT_DOUBLE_EQ(mean.totals[0].count, 2);
    EXPECT_DOUBLE_EQ(mean.totals[1].count, 15);
  }
}

TEST(MeanOfRunsTest, IsScaledIfOneRunWas) {
  const EventTotals whole = Counted({Part(0, 0, 10)}, TotalsBy::kAll);
  const EventTotals scaled = Counted({Part(0, 0, 5, 100, 50)}, TotalsBy::kAll);
  const EventTotals mean = MeanOfRuns({whole, scaled});
  EXPECT_EQ(mean.totals[0].kind, TotalKind::kScaled);
  EXPECT_DOUBLE_EQ(mean.totals[0].measured, 0.5);
}

// What Xen counts is read after sampling has begun, and before it ends.
TEST(AppendTest, KeepsTheStretchOfEachEvent) {
  EventTotals totals = Counted({Part(0, 0, 10)}, TotalsBy::kAll);
  totals.seconds = 3;
  EventTotals other;
  other.seconds = 2;
  other.events = {{"run-time", true}};
  AddCounted({Part(0, 0, 7)}, TotalsBy::kAll, other);
  Append(other, totals);
  EXPECT_EQ(totals.seconds, 3);
  EXPECT_EQ(totals.events[0].seconds, 0);
  EXPECT_EQ(totals.events[2].seconds, 2);
}

TEST(AppendTest, SortsByRowAndKeepsRatios) {
  EventTotals totals = Counted({Part(0, 0, 10), Part(0, 1, 20)}, TotalsBy::kVcpu);
  EventTotals other;
  other.events = {{"run-time", true}, {"faults"}};
  AddCounted({Part(0, 0, 7), Part(1, 0, 2)}, TotalsBy::kVcpu, other);
  EventComparison compared;
  compared.ratios = {{"rate", "rate", "faults per ns", false, {1, 0, 1}}};
  SetRatios(compared, other);
  totals.ratios.resize(3);
  Append(other, totals);
  EXPECT_THAT(Lines(totals), ElementsAre("d0 0 cycles 10 exact", "d0 0 run-time 7 exact",
                                         "d0 0 faults 2 exact", "d0 1 cycles 20 exact"));
  EXPECT_EQ(totals.totals[2].ratio_column, 3U);
  EXPECT_EQ(totals.ratios[3].key, "rate");
  EXPECT_THAT(totals.cautions, IsEmpty());
}

}  // namespace
}  // namespace xenoscope::profile
