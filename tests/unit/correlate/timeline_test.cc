#include "correlate/timeline.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;
using trace::kBlockedToRunnable;
using trace::kContinueRunning;
using trace::kD1V0;
using trace::kLostRecords;
using trace::kOfflineToRunnable;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToOffline;
using trace::kRunningToRunnable;
using trace::kSchedDomRem;
using trace::kVmentry;
using trace::kVmexit64;
using trace::kVmexitCpuid;
using trace::kVmexitHlt;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kD2V0 = trace::Vcpu(2, 0);

class Lines : public TimelineObserver {
 public:
  void OnRunstateInterval(const RunstateInterval& run) override {
    const std::string cause =
        run.cause == RunnableCause::kNone ? "" : std::string("/") + ToString(run.cause);
    const char* edge = run.edge == Edge::kComplete         ? ""
                       : run.edge == Edge::kBeforeFirstRun ? "/before its first run"
                                                           : "/open at the end";
    lines.push_back(fmt::format("[{},{}) p{} {} {}{}{}", run.range.begin.value, run.range.end.value,
                                run.pcpu.value, ToString(run.vcpu), ToString(run.state), cause,
                                edge));
  }
  void OnSegment(const Segment& segment) override {
    if (segment.kind == SegmentKind::kUndivided) return;
    lines.push_back(fmt::format(
        "  [{},{}) {} {}{}", segment.range.begin.value, segment.range.end.value,
        ToString(segment.vcpu), ToString(segment.kind),
        segment.kind == SegmentKind::kExit
            ? fmt::format(" {:x}{}", segment.reason, segment.completed ? " completed" : "")
            : ""));
  }
  void OnExit(const ExitArc& arc) override {
    lines.push_back(fmt::format("  arc [{},{}) {:x}{}", arc.range.begin.value, arc.range.end.value,
                                arc.reason, arc.finished ? "" : " unfinished"));
  }
  std::vector<std::string> lines;
};

std::vector<std::string> TimelineOf(const TraceBuilder& bytes) {
  Lines lines;
  Timeline timeline(lines);
  trace::Stream(bytes, timeline);
  timeline.Finish();
  return lines.lines;
}

TEST(Timeline, StartsAtFirstRunstateChange) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToBlocked, 30, {kD1V0}),
                   Rec(kBlockedToRunnable, 50, {kD1V0}), Rec(kRunnableToRunning, 60, {kD1V0}),
                   Rec(kRunningToRunnable, 70, {kD1V0}), Rec(kRunnableToRunning, 80, {kD2V0}),
                   Rec(kRunningToBlocked, 90, {kD2V0})});
  EXPECT_THAT(TimelineOf(trace), ElementsAre("[10,30) p0 d1v0 running", "[30,50) p0 d1v0 blocked",
                                             "[50,60) p0 d1v0 runnable/wake",
                                             "[60,70) p0 d1v0 running", "[80,90) p0 d2v0 running",
                                             "[70,90) p0 d1v0 runnable/preempt/open at the end",
                                             "[90,90) p0 d2v0 blocked/open at the end"));
}

TEST(Timeline, SplitsTimesliceIntoGuestAndExits) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kVmexit64, 20, {kVmexitCpuid, 0, 0}), Rec(kVmentry, 25, {}),
                   Rec(kVmexit64, 30, {kVmexitHlt, 0, 0}), Rec(kRunningToBlocked, 33, {kD1V0}),
                   Rec(kBlockedToRunnable, 40, {kD1V0}), Rec(kRunnableToRunning, 50, {kD1V0}),
                   Rec(kVmentry, 55, {}), Rec(kVmexit64, 60, {kVmexitCpuid, 0, 0})});
  EXPECT_THAT(
      TimelineOf(trace),
      ElementsAre("  [10,12) d1v0 resume", "  [12,20) d1v0 guest",
                  "  [20,25) d1v0 exit 72 completed", "  arc [20,25) 72", "  [25,30) d1v0 guest",
                  "  [30,33) d1v0 exit 78", "[10,33) p0 d1v0 running", "[33,40) p0 d1v0 blocked",
                  // A halted guest's blocked time belongs to its HLT, its wait does not.
                  "  arc [30,40) 78", "[40,50) p0 d1v0 runnable/wake",
                  "  [50,55) d1v0 exit 78 completed", "  [55,60) d1v0 guest",
                  "  [60,60) d1v0 exit 72", "[50,60) p0 d1v0 running",
                  "  arc [60,60) 72 unfinished"));
}

TEST(Timeline, LossMayHideWakeups) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToBlocked, 20, {kD1V0}),
                   Rec(kRunnableToRunning, 21, {kD2V0}),
                   Rec(kLostRecords, 100, {7, 1, 50, 0}),  // lost since 50; d1v0 runs at 100
                   Rec(kRunningToBlocked, 120, {kD1V0})});
  trace.Window(1,
               {Rec(kRunnableToRunning, 30, {3U << 16}), Rec(kRunningToBlocked, 110, {3U << 16})});
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("[10,20) p0 d1v0 running",
                          "[21,50) p0 d2v0 running",  // what ran ends first
                          "[20,50) p0 d1v0 blocked", "[50,100) p0 d1v0 lost",
                          "[30,110) p1 d3v0 running",  // elsewhere: goes on
                          "[100,120) p0 d1v0 running", "[120,120) p0 d1v0 blocked/open at the end",
                          "[50,120) p0 d2v0 lost/open at the end",
                          "[110,120) p1 d3v0 blocked/open at the end"));
}

TEST(Timeline, MergesLostIntervals) {
  std::vector<std::vector<uint32_t>> records = {Rec(kRunnableToRunning, 10, {kD1V0}),
                                                Rec(kRunningToBlocked, 20, {kD1V0})};
  for (uint32_t i = 1; i <= Timeline::kMaxLosses + 50; ++i) {
    records.push_back(Rec(kLostRecords, i * 100 + 50, {7, 2, i * 100, 0}));
  }
  TraceBuilder trace;
  trace.Window(0, records);
  const std::vector<std::string> lines = TimelineOf(trace);
  const auto lost = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("d1v0 lost") != std::string::npos;
  });
  EXPECT_EQ(lost, Timeline::kMaxLosses);
  EXPECT_THAT(lines, testing::Contains("[25600,30650) p0 d1v0 lost/open at the end"));
}

TEST(Timeline, DropsDestroyedDomain) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 11, {}),
                   Rec(kVmexit64, 12, {kVmexitHlt, 0, 0}), Rec(kRunningToBlocked, 20, {kD1V0}),
                   Rec(kSchedDomRem, 50, {1}),  // the next d1 is a PV domain
                   Rec(kBlockedToRunnable, 70, {kD1V0}), Rec(kRunnableToRunning, 80, {kD1V0}),
                   Rec(kRunningToBlocked, 90, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("  [10,11) d1v0 resume", "  [11,12) d1v0 guest", "  [12,20) d1v0 exit 78",
                          "[10,20) p0 d1v0 running", "[20,50) p0 d1v0 blocked/open at the end",
                          "  arc [12,50) 78 unfinished",
                          "[70,80) p0 d1v0 runnable/wake/before its first run",
                          "[80,90) p0 d1v0 running", "[90,90) p0 d1v0 blocked/open at the end"));
}

TEST(Timeline, HandlesManyPcpusAndVcpus) {
  TraceBuilder trace;
  for (uint32_t i = 0; i < 600; ++i) {
    trace.Window(i, {Rec(kRunnableToRunning, 10 + i, {kD1V0 | i}),
                     Rec(kRunningToBlocked, 1000 + i, {kD1V0 | i})});
  }
  const std::vector<std::string> lines = TimelineOf(trace);
  for (const uint32_t i : {0U, 255U, 256U, 599U}) {
    EXPECT_THAT(
        lines, testing::Contains(fmt::format("[{},{}) p{} d1v{} running", 10 + i, 1000 + i, i, i)));
  }
}

TEST(Timeline, LosingPcpuMayRunAnyIdleVcpu) {
  constexpr uint32_t kIdle1 = 0x7fffU << 16 | 1;
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD2V0}),
                   Rec(kLostRecords, 100, {7, 2, 50, 0}),  // lost since 50; d2v0 runs at 100
                   Rec(kRunningToBlocked, 130, {kD2V0})});
  trace.Window(1, {Rec(kRunnableToRunning, 30, {kD1V0}), Rec(kRunningToRunnable, 60, {kD1V0}),
                   Rec(kRunnableToRunning, 60, {kIdle1}), Rec(kRunningToRunnable, 70, {kIdle1}),
                   Rec(kRunnableToRunning, 70, {kD1V0}), Rec(kRunningToBlocked, 80, {kD1V0}),
                   Rec(kBlockedToRunnable, 90, {kD1V0}), Rec(kRunnableToRunning, 110, {kD1V0}),
                   Rec(kRunningToRunnable, 120, {kD1V0})});
  EXPECT_THAT(
      TimelineOf(trace),
      ElementsAre("[10,50) p0 d2v0 running", "[30,60) p1 d1v0 running",
                  "[60,70) p1 idle/1 running",  // the idle vCPU runs nowhere else
                  "[60,70) p1 d1v0 lost", "[70,80) p1 d1v0 running", "[50,100) p0 d2v0 lost",
                  "[80,110) p1 d1v0 lost",  // its waking is seen, what it did before is not
                  "[110,120) p1 d1v0 running", "[100,130) p0 d2v0 running",
                  // The end is that of one vCPU after the other, by number.
                  "[120,130) p1 d1v0 runnable/preempt/open at the end",
                  "[130,130) p0 d2v0 blocked/open at the end",
                  "[70,130) p1 idle/1 runnable/preempt/open at the end"));
}

TEST(Timeline, CountsLossBeforeFirstRun) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kBlockedToRunnable, 10, {kD1V0}),
                   Rec(kLostRecords, 60, {7, 2, 20, 0}),  // lost since 20; d2v0 runs at 60
                   Rec(kRunningToBlocked, 70, {kD2V0}), Rec(kRunnableToRunning, 70, {kD1V0}),
                   Rec(kRunningToBlocked, 80, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("[10,20) p0 d1v0 runnable/wake/before its first run",
                          "[60,70) p0 d2v0 running", "[20,70) p0 d1v0 lost",
                          "[70,80) p0 d1v0 running", "[80,80) p0 d1v0 blocked/open at the end",
                          "[70,80) p0 d2v0 blocked/open at the end"));
}

TEST(Timeline, LosesVcpuOfEndedPcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kContinueRunning, 20, {kD1V0})});
  trace.Window(1, {Rec(kRunnableToRunning, 15, {kD2V0}), Rec(kRunnableToRunning, 40, {kD1V0}),
                   Rec(kRunningToBlocked, 50, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace), ElementsAre("[10,20) p0 d1v0 running", "[20,40) p0 d1v0 lost",
                                             "[15,40) p1 d2v0 running", "[40,50) p1 d1v0 running",
                                             "[50,50) p1 d1v0 blocked/open at the end"));
}

TEST(Timeline, ContinueRunningImpliesRunningSinceBegin) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 5, {}), Rec(kContinueRunning, 20, {kD1V0}),
                   Rec(kRunningToBlocked, 30, {kD1V0}), Rec(kContinueRunning, 40, {kD2V0}),
                   Rec(kRunningToBlocked, 50, {kD2V0})});
  EXPECT_THAT(TimelineOf(trace), ElementsAre("[5,30) p0 d1v0 running", "[40,50) p0 d2v0 running",
                                             "[30,50) p0 d1v0 blocked/open at the end",
                                             "[50,50) p0 d2v0 blocked/open at the end"));
}

TEST(Timeline, OfflineVcpuCanWake) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToOffline, 20, {kD1V0}),
                   Rec(kOfflineToRunnable, 30, {kD1V0}), Rec(kRunnableToRunning, 40, {kD1V0}),
                   Rec(kRunningToBlocked, 50, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("[10,20) p0 d1v0 running", "[20,30) p0 d1v0 offline",
                          "[30,40) p0 d1v0 runnable/wake", "[40,50) p0 d1v0 running",
                          "[50,50) p0 d1v0 blocked/open at the end"));
}

TEST(Timeline, IgnoresWakeOfRunnableVcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 20, {kD1V0}),
                   Rec(kBlockedToRunnable, 30, {kD1V0}), Rec(kRunnableToRunning, 40, {kD1V0}),
                   Rec(kRunningToBlocked, 50, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("[10,20) p0 d1v0 running", "[20,30) p0 d1v0 runnable/preempt",
                          "[30,40) p0 d1v0 runnable/other", "[40,50) p0 d1v0 running",
                          "[50,50) p0 d1v0 blocked/open at the end"));
}

TEST(Timeline, CountsRunstateMismatches) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 30, {})});
  trace.Window(1, {Rec(kRunnableToRunning, 20, {kD1V0})});
  Lines lines;
  Timeline timeline(lines);
  trace::Stream(trace, timeline);
  EXPECT_EQ(timeline.faults().runstate_mismatches, 1U);
  EXPECT_EQ(timeline.faults().ran_twice, 1U);
  EXPECT_EQ(timeline.faults().first_mismatch_offset, 52U);
  EXPECT_EQ(timeline.Current(PcpuId{0}), nullptr);
}

TEST(Timeline, ContinueRunningEndsTimeslice) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
                   Rec(kContinueRunning, 20, {kD1V0}), Rec(kRunningToBlocked, 30, {kD1V0})});
  EXPECT_THAT(TimelineOf(trace), ElementsAre("  [10,12) d1v0 resume", "[10,20) p0 d1v0 running",
                                             "  [12,30) d1v0 guest", "[20,30) p0 d1v0 running",
                                             "[30,30) p0 d1v0 blocked/open at the end"));
}

TEST(Timeline, MarksIncompleteIntervals) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kBlockedToRunnable, 10, {kD1V0}), Rec(kRunnableToRunning, 20, {kD1V0}),
                   Rec(kRunningToBlocked, 30, {kD1V0}), Rec(kRunnableToRunning, 40, {kD2V0})});
  // d2v0 has not run for any time.
  EXPECT_THAT(TimelineOf(trace),
              ElementsAre("[10,20) p0 d1v0 runnable/wake/before its first run",
                          "[20,30) p0 d1v0 running", "[30,40) p0 d1v0 blocked/open at the end"));
}

}  // namespace
}  // namespace xenoscope::correlate
