#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary/address_space.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using trace::Rec;
using trace::TraceBuilder;

TEST(GuestCr3, MeasuresAddressSpacesFromFirstWrite) {
  // The times before the first write belong to no space: it takes effect at 40.
  //
  //   cycle  20     30        40     140       147    150   155      1000   2000  2010   2020
  //   d1v0   enter  cr3=1005  enter  cr3=2000  enter  exit  blocked  woken  runs  enter  preempted
  //   space                   0x1000           0x2000
  TraceBuilder trace;
  trace.Window(
      0,
      {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 20, {}),
       Rec(kVmexit, 30, {kVmxCrAccess, 0, 0}), Rec(kCrWrite, {kCr3, 0x1005, 0}),
       Rec(kVmentry, 40, {}), Rec(kVmexit, 140, {kVmxCrAccess, 0, 0}),  // 0x1000: 100 in the guest
       Rec(kCrWrite, {kCr3, 0x2000, 0x80000000}), Rec(kPreallocUnpin, {1, 0}),
       Rec(kVmentry, 147, {}),                  // 7 in the hypervisor
       Rec(kVmexit, 150, {kVmxHlt, 0, 0}),      // 0x2000: 3 in the guest
       Rec(kRunningToBlocked, 155, {kD1V0}),    // 5 in the hypervisor
       Rec(kBlockedToRunnable, 1000, {kD1V0}),  // blocked and waiting: not counted
       Rec(kRunnableToRunning, 2000, {kD1V0}), Rec(kVmentry, 2010, {}),  // 10 in the hypervisor
       Rec(kRunningToRunnable, 2020, {kD1V0})});                         // 10 in the guest
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeGuestCr3, trace::Vendor::kVmx), 1, 0, "cr3"),
              ElementsAre("cr3/0x1000 switches=1 guest_cycles=100 hypervisor_cycles=7 unpins=1",
                          "cr3/0x2000 switches=1 guest_cycles=13 hypervisor_cycles=15"));
}

}  // namespace
}  // namespace xenoscope::analysis
