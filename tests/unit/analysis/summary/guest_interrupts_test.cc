#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using trace::Rec;
using trace::TraceBuilder;

std::vector<std::string> LinesOf(const std::vector<std::vector<uint32_t>>& records) {
  TraceBuilder trace;
  trace.Window(0, records);
  return VcpuLines(Analysed(trace, MakeGuestInterrupts, trace::Vendor::kSvm), 1, 0,
                   "guest_interrupts");
}

TEST(GuestInterrupts, DurationIsFromDeliveringEntryToHalt) {
  //   cycle  10    20            40                  100
  //   d1v0   runs  enter (0x30)  enter (0x30 again)  halts
  //                |<------------- 80 -------------->|
  EXPECT_THAT(LinesOf({Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kInjVirq, {0x30, 0}),
                       Rec(kVmentry, 20, {}), Rec(kInjVirq, {0x30, 0}),  // the time goes on
                       Rec(kVmentry, 40, {}), Rec(kRunningToBlocked, 100, {kD1V0})}),
              ElementsAre("guest_interrupts/vector 0x30 count=2",
                          "guest_interrupts/vector 0x30/intr to halt count=1 cycles=80"));
}

TEST(GuestInterrupts, FirstInterruptAfterWakeIsWakeSource) {
  //   cycle  20     30     40    50          60          100    110    120   130         137
  //   d1v0   halts  woken  runs  enter 0x30  enter 0x31  halts  woken  runs  enter 0x30  halts
  //                              |<--------- 50 -------->|                   |<-- 7 --->|
  //                                          |<-- 40 -->|
  EXPECT_THAT(LinesOf({Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToBlocked, 20, {kD1V0}),
                       Rec(kBlockedToRunnable, 30, {kD1V0}), Rec(kRunnableToRunning, 40, {kD1V0}),
                       Rec(kInjVirq, {0x30, 0}), Rec(kVmentry, 50, {}), Rec(kInjVirq, {0x31, 1}),
                       Rec(kVmentry, 60, {}), Rec(kRunningToBlocked, 100, {kD1V0}),
                       Rec(kBlockedToRunnable, 110, {kD1V0}), Rec(kRunnableToRunning, 120, {kD1V0}),
                       Rec(kInjVirq, {0x30, 0}), Rec(kVmentry, 130, {}),
                       Rec(kRunningToBlocked, 137, {kD1V0})}),
              ElementsAre("guest_interrupts/vector 0x30 count=2",
                          "guest_interrupts/vector 0x30/wake to halt alone count=1 cycles=7",
                          "guest_interrupts/vector 0x30/wake to halt any count=2 cycles=57",
                          "guest_interrupts/vector 0x31 count=1 fake=1",
                          "guest_interrupts/vector 0x31/intr to halt count=1 cycles=40"));
}

TEST(GuestInterrupts, PreemptionIsNotHalt) {
  //   cycle  10    20            30         40    90
  //   d1v0   runs  enter (0x30)  preempted  runs  halts
  //                |<------------- 70 ----------->|
  EXPECT_THAT(LinesOf({Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kInjVirq, {0x30, 0}),
                       Rec(kVmentry, 20, {}), Rec(kRunningToRunnable, 30, {kD1V0}),
                       Rec(kRunnableToRunning, 40, {kD1V0}), Rec(kRunningToBlocked, 90, {kD1V0})}),
              ElementsAre("guest_interrupts/vector 0x30 count=1",
                          "guest_interrupts/vector 0x30/intr to halt count=1 cycles=70"));
}

TEST(GuestInterrupts, LossRestartsMeasurement) {
  //   cycle  20     30     40    50            60             80    90            100
  //   d1v0   halts  woken  runs  enter (0x30)  records lost   runs  enter (0x30)  halts
  //                                                                 |<--- 10 --->|
  EXPECT_THAT(LinesOf({Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToBlocked, 20, {kD1V0}),
                       Rec(kBlockedToRunnable, 30, {kD1V0}), Rec(kRunnableToRunning, 40, {kD1V0}),
                       Rec(kInjVirq, {0x30, 0}), Rec(kVmentry, 50, {}),
                       Rec(kLostRecords, 80, {7, 1, 60, 0}),  // lost since 60; d1v0 runs at 80
                       Rec(kInjVirq, {0x30, 0}), Rec(kVmentry, 90, {}),
                       Rec(kRunningToBlocked, 100, {kD1V0})}),
              ElementsAre("guest_interrupts/vector 0x30 count=2",
                          "guest_interrupts/vector 0x30/wake to halt alone count=1 cycles=10",
                          "guest_interrupts/vector 0x30/wake to halt any count=1 cycles=10"));
}

}  // namespace
}  // namespace xenoscope::analysis
