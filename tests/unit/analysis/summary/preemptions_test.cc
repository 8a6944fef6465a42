// Preemptions: which vCPU ran while another one waited, and what that meant for the other vCPUs of
// the waiting domain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::kIdle;
using trace::Rec;
using trace::TraceBuilder;

TEST(Preemptions, ChargeAWaitToTheVcpusThatRanMeanwhile) {
  //   cycle  100   110        130      135  140   150    170      180      190   193
  //   p0     d1v0  d2v0       d0v0     -    d1v0  d1v0   d2v0     idle     idle  d1v0
  //   d1v0   runs  preempted  waits         runs         blocked           woken runs
  //   d2v0         runs       blocked             woken  runs     blocked
  TraceBuilder trace;
  trace.Window(
      0,
      {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}),
       Rec(kRunningToRunnable, 110, {Vcpu(1, 0)}),  // preempted by d2
       Rec(kRunnableToRunning, 110, {Vcpu(2, 0)}),
       Rec(kContinueRunning, 120, {Vcpu(2, 0)}),  // chosen again
       Rec(kRunningToBlocked, 130, {Vcpu(2, 0)}),
       Rec(kRunnableToRunning, 130, {Vcpu(0, 0)}),  // and then by dom0
       Rec(kRunningToBlocked, 135, {Vcpu(0, 0)}),
       Rec(kRunnableToRunning, 140, {Vcpu(1, 0)}),  // for 5 cycles no vCPU ran
       Rec(kBlockedToRunnable, 150, {Vcpu(2, 0)}),  // woken, waits for d1
       Rec(kRunningToBlocked, 170, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 170, {Vcpu(2, 0)}),
       Rec(kRunningToBlocked, 180, {Vcpu(2, 0)}), Rec(kRunnableToRunning, 180, {Vcpu(kIdle, 0)}),
       Rec(kBlockedToRunnable, 190, {Vcpu(1, 0)}),  // while the pCPU idles
       Rec(kRunningToRunnable, 193, {Vcpu(kIdle, 0)}), Rec(kRunnableToRunning, 193, {Vcpu(1, 0)})});
  const AnalysisResult result = Analysed(trace, MakePreemptions);
  EXPECT_THAT(VcpuLines(result, 1, 0),
              ElementsAre("waited_for/d2v0 cycles=20", "waited_for/d2v0/preempt cycles=20",
                          "waited_for/d0v0 cycles=5", "waited_for/d0v0/preempt cycles=5",
                          "waited_for/idle/0 cycles=3", "waited_for/idle/0/wake cycles=3",
                          "waited_for_edges/not known who ran cycles=5"));
  EXPECT_THAT(VcpuLines(result, 2, 0),
              ElementsAre("waited_for/d1v0 cycles=20", "waited_for/d1v0/wake cycles=20"));
  EXPECT_THAT(VcpuLines(result, kIdle, 0), IsEmpty());
}

// d1v0 waits on p0 for d2v0, and is then run by p1 while d2v0 goes on.
//
//   cycle  100    110        125          150
//   p0     d1v0   d2v0       d2v0
//   p1     d3v0   d3v0       d1v0
//   d1v0   runs   preempted  runs on p1   blocked
TEST(Preemptions, EndWhenVcpuMigrates) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}), Rec(kRunningToRunnable, 110, {Vcpu(1, 0)}),
          Rec(kRunnableToRunning, 110, {Vcpu(2, 0)}), Rec(kRunningToBlocked, 150, {Vcpu(2, 0)})});
  trace.Window(
      1, {Rec(kRunnableToRunning, 100, {Vcpu(3, 0)}), Rec(kRunningToBlocked, 125, {Vcpu(3, 0)}),
          Rec(kRunnableToRunning, 125, {Vcpu(1, 0)}), Rec(kRunningToBlocked, 150, {Vcpu(1, 0)})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakePreemptions), 1, 0),
              ElementsAre("waited_for/d2v0 cycles=15", "waited_for/d2v0/preempt cycles=15"));
}

// d1v0 is preempted twice. During the first wait d1v1 runs for 10 + 5 cycles, during the second one
// it does not run:
//
//   cycle  100   105   111              121      130    135   140   145      151             160
//   p0     d1v0        d2v0 (at 0x4000)                       d1v0           - (at 0x5000)   d1v0
//   p1           d1v1                   blocked  woken  d1v1        blocked
TEST(Hazards, AreListedByTheAddressWhereTheVcpuWasPreempted) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}), Rec(kVmentry, 101, {}),
          Rec(kVmexit, 110, {kVmxExternalInterrupt, 0x4000, 0}),
          Rec(kRunningToRunnable, 111, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 111, {Vcpu(2, 0)}),
          Rec(kRunningToBlocked, 140, {Vcpu(2, 0)}), Rec(kRunnableToRunning, 140, {Vcpu(1, 0)}),
          Rec(kVmentry, 141, {}), Rec(kVmexit, 150, {kVmxExternalInterrupt, 0x5000, 0}),
          Rec(kRunningToRunnable, 151, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 160, {Vcpu(1, 0)})});
  trace.Window(
      1, {Rec(kRunnableToRunning, 105, {Vcpu(1, 1)}), Rec(kRunningToBlocked, 121, {Vcpu(1, 1)}),
          Rec(kBlockedToRunnable, 130, {Vcpu(1, 1)}), Rec(kRunnableToRunning, 135, {Vcpu(1, 1)}),
          Rec(kRunningToBlocked, 145, {Vcpu(1, 1)})});
  const AnalysisResult result = Analysed(trace, MakeHazards, trace::Vendor::kVmx);
  EXPECT_THAT(VcpuLines(result, 1, 0),
              ElementsAre("hazards/0x4000, EXTERNAL_INTERRUPT count=1 cycles=15"));
  EXPECT_THAT(VcpuLines(result, 1, 1), IsEmpty());  // it was woken, not preempted
}

// The trace has no addresses of PV guests. The wait that goes on at the end counts up to there.
//
//   cycle  100    110        150
//   p0     d1v0   d2v0       the trace ends
//   p1     d1v1   d1v1
TEST(Hazards, HaveNoAddressInPvGuests) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 100, {Vcpu(1, 0)}), Rec(kRunningToRunnable, 110, {Vcpu(1, 0)}),
          Rec(kRunnableToRunning, 110, {Vcpu(2, 0)}), Rec(kContinueRunning, 150, {Vcpu(2, 0)})});
  trace.Window(
      1, {Rec(kRunnableToRunning, 100, {Vcpu(1, 1)}), Rec(kContinueRunning, 150, {Vcpu(1, 1)})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeHazards), 1, 0),
              ElementsAre("hazards/(address not in the trace) count=1 cycles=40"));
}

}  // namespace
}  // namespace xenoscope::analysis
