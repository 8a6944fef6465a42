#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/registry.h"
#include "tests/unit/analysis/figures_of_trace.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using trace::Rec;
using trace::TraceBytes;

constexpr uint32_t kPitCallback = 0x84009;
constexpr uint32_t kLapicCallback = 0x8400a;

TEST(DeviceEmulation, IsCountedWithAndWithoutAVcpu) {
  TraceBytes trace;
  trace.Window(0, {Rec(kPitCallback, 5, {}), Rec(kRunnableToRunning, 10, {kD1V0}),
                   Rec(kPitCallback, 20, {}), Rec(kLapicCallback, 30, {})});
  const Result result = ResultOf(trace, MakeDeviceEmulation, trace::Vendor::kVmx);
  EXPECT_THAT(Lines(result.document.trace, "device_emulation"),
              ElementsAre("pit_timer_cb count 2", "lapic_timer_cb count 1"));
  EXPECT_THAT(VcpuLines(result, "device_emulation"),
              ElementsAre("pit_timer_cb count 1", "lapic_timer_cb count 1"));
}

}  // namespace
}  // namespace xenoscope::analysis
