#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vendor;

TEST(GuestLevels, DivideTheTimeInTheGuest) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}),
                   // Nothing says where it was entered: the exit says which guest ran.
                   Rec(kNestedVmexit, 13, {kVmexitCpuid, 0, 0}), Rec(kVmentry, 20, {}),
                   Rec(kVmexit, 120, {kVmexitCpuid, 0, 0}), Rec(kNestedVmentry, 130, {}),
                   Rec(kNestedVmexit, 170, {kVmexitCpuid, 0, 0}), Rec(kVmentry, 180, {}),
                   Rec(kVmexit, 200, {kVmexitCpuid, 0, 0}), Rec(kRunningToBlocked, 210, {kD1V0})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeGuestLevels, Vendor::kSvm), 1, 0),
              ElementsAre("guest_levels/guest cycles=120", "guest_levels/nested guest cycles=43"));
}

TEST(GuestLevels, AreLeftOutWithoutNestedGuests) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 20, {}),
                   Rec(kVmexit, 120, {kVmexitCpuid, 0, 0}), Rec(kRunningToBlocked, 210, {kD1V0})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeGuestLevels, Vendor::kSvm), 1, 0), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::analysis
