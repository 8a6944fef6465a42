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

TEST(DeviceEmulation, IsCountedForTheTraceAndForTheRunningVcpu) {
  //   cycle  5             10    20            30
  //   p0     PIT callback  d1v0  PIT callback  LAPIC callback
  TraceBuilder trace;
  trace.Window(0, {Rec(kPitCallback, 5, {}), Rec(kRunnableToRunning, 10, {kD1V0}),
                   Rec(kPitCallback, 20, {}), Rec(kLapicCallback, 30, {})});
  const AnalysisResult result = Analysed(trace, MakeDeviceEmulation, trace::Vendor::kVmx);
  EXPECT_THAT(Lines(result.document.trace, "device_emulation"),
              ElementsAre("device_emulation/pit_timer_cb count=2",
                          "device_emulation/lapic_timer_cb count=1"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "device_emulation"),
              ElementsAre("device_emulation/pit_timer_cb count=1",
                          "device_emulation/lapic_timer_cb count=1"));
}

}  // namespace
}  // namespace xenoscope::analysis
