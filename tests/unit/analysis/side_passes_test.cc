#include "analysis/side_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using trace::GuestEvent;
using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kRunningToRunnable;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint64_t kBegin = 1'000'000;
constexpr uint64_t kPeriod = uint64_t{1} << 24;
constexpr uint64_t kPeriods = 40;
constexpr uint64_t kGuestTscOffset = 12'345;

// In each period, d1v0 runs on p0 for 1000 cycles, and makes an event with its TSC after 400. Then
// it runs on p1, whose clock is 300 cycles behind:
//
//   cycle  0               400     1000            (period)
//   p0     d1v0 runs ----- event - preempted
//   p1                              d1v0 runs: stamped 700 to 1700
TraceBuilder ContradictoryTrace() {
  TraceBuilder trace;
  for (uint64_t i = 0; i < kPeriods; ++i) {
    const uint64_t at = kBegin + i * kPeriod;
    const uint64_t guest = at + 400 + kGuestTscOffset;
    trace.Window(
        0, {Rec(kRunnableToRunning, at, {kD1V0}),
            Rec(GuestEvent(7), {static_cast<uint32_t>(guest), static_cast<uint32_t>(guest >> 32)}),
            Rec(kRunningToRunnable, at + 1000, {kD1V0})});
    trace.Window(1, {Rec(kRunnableToRunning, at + 700, {kD1V0}),
                     Rec(kRunningToRunnable, at + 1700, {kD1V0})});
  }
  return trace;
}

constexpr TscRange kRange{Tsc{kBegin}, Tsc{kBegin + (kPeriods - 1) * kPeriod + 1700}};

std::vector<std::string> Lines(const std::vector<correlate::ClockSkew>& skews) {
  std::vector<std::string> lines;
  lines.reserve(skews.size());
  for (const correlate::ClockSkew& skew : skews) {
    lines.push_back(std::string("p") + std::to_string(skew.pcpu.value) + " " + ToString(skew.kind) +
                    " " + std::to_string(skew.first.min) + ".." + std::to_string(skew.first.max));
  }
  return lines;
}

std::vector<std::string> Lines(const std::vector<correlate::DomainClock>& clocks) {
  std::vector<std::string> lines;
  for (const correlate::DomainClock& clock : clocks) {
    for (const correlate::ClockEpoch& epoch : clock.epochs) {
      lines.push_back("d" + std::to_string(clock.domain.value) + " " +
                      std::to_string(epoch.events) + " events, offset from " +
                      std::to_string(epoch.ranges.front().min));
    }
  }
  return lines;
}

// The first of the contradictions.
correlate::TimeSpans Contradictions() {
  correlate::TimeSpans spans;
  spans.Add(Tsc{kBegin + 700});
  return spans;
}

class SidePassesTest : public ::testing::Test {
 protected:
  const TraceBuilder bytes_ = ContradictoryTrace();
  const trace::TraceFile file_ = *trace::TraceFile::FromBytes(bytes_.bytes(), "test");
  const std::vector<std::string> skews_ =
      Lines(correlate::CompareClocks(file_, kRange, Contradictions()));
  const std::vector<std::string> guest_clocks_ = Lines(correlate::FindGuestClocks(file_));
};

TEST_F(SidePassesTest, FindTheSameWhetherTheyBeganEarlierOrNot) {
  SidePasses begun(file_);
  begun.BeginSkews(Contradictions());
  begun.BeginGuestClocks();
  SidePasses late(file_);
  for (SidePasses* side : {&begun, &late}) {
    EXPECT_EQ(Lines(side->Skews(kRange, Contradictions())), skews_);
    EXPECT_EQ(Lines(side->GuestClocks()), guest_clocks_);
  }
  EXPECT_THAT(skews_, SizeIs(1));
  EXPECT_THAT(guest_clocks_, SizeIs(1));
}

TEST_F(SidePassesTest, AreMadeWhateverTheNumberOfPartitions) {
  const Tsc middle{kBegin + kPeriods / 2 * kPeriod};
  const TraceHints hints{.clock = {}, .dialect = {}, .resolver = nullptr, .guest_clocks = true};
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{}, std::vector<PartitionBegin>{{middle, Tsc{kBegin}}}}) {
    const auto result = AnalyseDivision(file_, hints, AllAnalyses, PartitionAtEach(begins));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Lines(result->metadata.skews), skews_);
    EXPECT_EQ(Lines(result->trace.guest_clocks), guest_clocks_);
  }
}

TEST(SidePasses, CompareClocksAsIfAllRecordsContradicted) {
  size_t proven = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto result = AnalyseDivision(*file, {}, AllAnalyses, {});
    ASSERT_TRUE(result.ok()) << result.status();
    const TscRange whole{result->trace.first, result->trace.last};
    correlate::TimeSpans all;
    for (const Tsc at : {whole.begin, whole.end}) all.Add(at);  // near each other
    const auto skews = Lines(correlate::CompareClocks(*file, whole, all));
    EXPECT_EQ(Lines(result->metadata.skews), skews);
    proven += skews.size();
  }
  EXPECT_GT(proven, 0U);
}

TEST_F(SidePassesTest, DoNotSearchForClocksThatNobodyWants) {
  const auto result = AnalyseDivision(file_, {}, AllAnalyses, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->trace.guest_clocks, IsEmpty());
}

}  // namespace
}  // namespace xenoscope::analysis
