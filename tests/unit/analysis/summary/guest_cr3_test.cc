#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary/registry.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kVmentry = 0x81001;
constexpr uint32_t kVmexit = 0x81102;
constexpr uint32_t kCrWrite = 0x82109;
constexpr uint32_t kPreallocUnpin = 0x40f00d;

TEST(GuestCr3, TimeInEachAddressSpaceFromTheFirstWriteOn) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 20, {}), Rec(kVmexit, 30, {28, 0, 0}),
          Rec(kCrWrite, {3, 0x1005, 0}), Rec(kVmentry, 40, {}),
          Rec(kVmexit, 140, {28, 0, 0}),  // 0x1000: 100 in the guest
          Rec(kCrWrite, {3, 0x2000, 0x80000000}), Rec(kPreallocUnpin, {1, 0}),
          Rec(kVmentry, 147, {}),                  // 7 in the hypervisor
          Rec(kVmexit, 150, {12, 0, 0}),           // 0x2000: 3 in the guest
          Rec(kRunningToBlocked, 155, {kD1V0}),    // 5 in the hypervisor
          Rec(kBlockedToRunnable, 1000, {kD1V0}),  // nobody's
          Rec(kRunnableToRunning, 2000, {kD1V0}), Rec(kVmentry, 2010, {}),  // 10 in the hypervisor
          Rec(kRunningToRunnable, 2020, {kD1V0})});                         // 10 in the guest
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeGuestCr3, trace::Vendor::kVmx), 1, 0, "cr3"),
              ElementsAre("cr3/0x1000 switches=1 guest_cycles=100 hypervisor_cycles=7 unpins=1",
                          "cr3/0x2000 switches=1 guest_cycles=13 hypervisor_cycles=15"));
}

}  // namespace
}  // namespace xenoscope::analysis
