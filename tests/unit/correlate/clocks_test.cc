#include "correlate/clocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "correlate/timeline.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using trace::kBlockedToRunnable;
using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToRunnable;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint64_t kBegin = 1'000'000;

// d1v0 is on p0 for 400 cycles, 100 later for 400 on p1, and so on for `turns`; p1's clock is ahead
// by `ahead`, and `drift` more each turn.
TraceBuilder HoppingVcpu(int64_t ahead, int64_t drift = 0, uint64_t turns = 64) {
  std::vector<std::vector<uint32_t>> p0;
  std::vector<std::vector<uint32_t>> p1;
  for (uint64_t turn = 0; turn < turns; ++turn) {
    const uint64_t at = kBegin + 1000 * turn;
    const uint64_t there = at + static_cast<uint64_t>(ahead + drift * static_cast<int64_t>(turn));
    p0.push_back(Rec(kRunnableToRunning, at, {kD1V0}));
    p0.push_back(Rec(kRunningToRunnable, at + 400, {kD1V0}));
    p1.push_back(Rec(kRunnableToRunning, there + 500, {kD1V0}));
    p1.push_back(Rec(kRunningToRunnable, there + 900, {kD1V0}));
  }
  TraceBuilder trace;
  trace.Window(0, p0);
  trace.Window(1, p1);
  return trace;
}

// Compares the clocks where a timeline has found contradictions.
std::vector<ClockSkew> Compared(const trace::TraceFile& file) {
  TimelineObserver nobody;
  Timeline timeline(nobody);
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) timeline.Take(*item);
  return CompareClocks(file, {Tsc{kBegin}, Tsc{kBegin + 64'000}}, timeline.faults().mismatches);
}

std::vector<ClockSkew> Compared(const TraceBuilder& bytes) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  return Compared(*file);
}

TEST(Clocks, AgreeWithoutContradiction) {
  for (const int64_t ahead : {-100, 0, 100}) EXPECT_TRUE(Compared(HoppingVcpu(ahead)).empty());
}

TEST(Clocks, BoundSkewByVcpuMigrations) {
  for (const int64_t ahead : {-350, -150, 150, 350}) {
    const auto skews = Compared(HoppingVcpu(ahead));
    ASSERT_EQ(skews.size(), 1U) << ahead;
    EXPECT_EQ(skews[0].reference, PcpuId{0});
    EXPECT_EQ(skews[0].pcpu, PcpuId{1});
    EXPECT_EQ(skews[0].kind, SkewKind::kConstant);
    // It may come 100 earlier and leave 100 later than it does.
    EXPECT_EQ(skews[0].first.min, ahead - 100);
    EXPECT_EQ(skews[0].first.max, ahead + 100);
  }
}

TEST(Clocks, DetectSkewFromWakeups) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToBlocked, 1400, {kD1V0}),
                   Rec(kRunnableToRunning, 1500, {kD1V0}), Rec(kRunningToBlocked, 1900, {kD1V0})});
  trace.Window(1, {Rec(kBlockedToRunnable, 1650, {kD1V0})});
  const auto skews = Compared(trace);
  ASSERT_EQ(skews.size(), 1U);
  EXPECT_EQ(skews[0].first.min, 150);                   // it was woken at 1500 at the latest
  EXPECT_EQ(skews[0].first.max, 250);                   // and at 1400 at the earliest
  EXPECT_EQ(skews[0].proof_offset, 12U + 4 * 16 + 12);  // the waking
}

TEST(Clocks, AreComparedFromTheFirstContradiction) {
  // d1v0 runs on p0 from long before until long after the only contradiction: it runs on p1, too.
  // Before and after that, other vCPUs run.
  constexpr uint64_t kLater = kBegin + 60'000;
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, kBegin, {kD1V0})});
  trace.Window(0, {Rec(kRunningToBlocked, kLater + 90'000, {kD1V0})});
  for (uint64_t at = kBegin; at < kLater; at += 1000) {
    trace.Window(1, {Rec(kRunnableToRunning, at, {trace::Vcpu(2, 0)}),
                     Rec(kRunningToRunnable, at + 900, {trace::Vcpu(2, 0)})});
  }
  trace.Window(
      1, {Rec(kRunnableToRunning, kLater, {kD1V0}), Rec(kRunningToBlocked, kLater + 100, {kD1V0})});
  const auto skews = Compared(trace);
  ASSERT_EQ(skews.size(), 1U);
  EXPECT_EQ(skews[0].first.min, 60'100);  // on p1 before p0
}

TEST(Clocks, ContradictionWithoutOverlapProvesNothing) {
  //   p0     d1v0 runs 1000-1400, is said to block again at 1500
  //   p1     d1v0 runs 1600-1900
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToBlocked, 1400, {kD1V0}),
                   Rec(kRunningToBlocked, 1500, {kD1V0})});
  trace.Window(1, {Rec(kBlockedToRunnable, 1550, {kD1V0}), Rec(kRunnableToRunning, 1600, {kD1V0}),
                   Rec(kRunningToBlocked, 1900, {kD1V0})});
  EXPECT_TRUE(Compared(trace).empty());
}

TEST(Clocks, AreComparedAtEachContradiction) {
  // The first contradiction is no overlap. A second later, d1v0 runs on both pCPUs.
  constexpr uint64_t kLater = kBegin + (uint64_t{1} << 31);
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, kBegin, {kD1V0}), Rec(kRunningToBlocked, kBegin + 400, {kD1V0}),
          Rec(kRunningToBlocked, kBegin + 500, {kD1V0})});
  trace.Window(1, {Rec(kRunnableToRunning, kBegin, {trace::Vcpu(2, 0)})});
  trace.Window(
      0, {Rec(kRunnableToRunning, kLater, {kD1V0}), Rec(kRunningToBlocked, kLater + 400, {kD1V0})});
  trace.Window(1, {Rec(kRunningToBlocked, kLater - 100, {trace::Vcpu(2, 0)}),
                   Rec(kRunnableToRunning, kLater + 300, {kD1V0}),
                   Rec(kRunningToBlocked, kLater + 900, {kD1V0})});
  const auto skews = Compared(trace);
  ASSERT_EQ(skews.size(), 1U);
  EXPECT_EQ(skews[0].first.max, -100);
}

TEST(Clocks, DetectDrift) {
  const auto skews = Compared(HoppingVcpu(150, 5));
  ASSERT_EQ(skews.size(), 1U);
  EXPECT_EQ(skews[0].kind, SkewKind::kDrifting);
  EXPECT_LE(skews[0].first.min, 150 + 5 * 4);
  EXPECT_GE(skews[0].first.max, 150);
  EXPECT_GT(skews[0].last.min, skews[0].first.max);
}

TEST(Clocks, AgreeAfterCorrection) {
  const TraceBuilder bytes = HoppingVcpu(350);
  auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(file->ShiftClock(PcpuId{1}, -350).ok());
  EXPECT_TRUE(Compared(*file).empty());
  EXPECT_EQ(file->ShiftClock(PcpuId{7}, 1).message(),
            "test: no pCPU 7 in this trace, which has 2 of them");
}

}  // namespace
}  // namespace xenoscope::correlate
