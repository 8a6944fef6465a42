#include "guests/clock/kernel_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "recording/sample_format.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using correlate::OffsetRange;
using testing::ElementsAre;

constexpr DomainId kD1{1};

// d1v0 is in the guest in [1200, 2000), [2600, 3000) and [3200, 4000).
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kVmentry, 1200, {}),
          Rec(kVmexit64, 2000, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 2600, {}),
          Rec(kVmexit64, 3000, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 3200, {}),
          Rec(kVmexit64, 4000, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 4100, {kD1V0})});
  return xen;
}

class KernelClockTest : public testing::Test {
 protected:
  // The agent's TSC was `guest` between the host's `before` and `after`.
  void Answer(uint64_t before, uint64_t guest, uint64_t after) {
    const recording::ClockAnswer answer{before, guest, after};
    kernel_.writer().AppendClockAnswers(kD1, {&answer, 1});
  }
  KernelClock Find(bool with_trace = true) {
    const trace::TraceBuilder bytes = Xen();
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    EXPECT_TRUE(xen.ok()) << xen.status();
    const KernelTrace* const trace = &kernel_.Open();
    return FindKernelClocks({&trace, 1}, with_trace ? &*xen : nullptr).at(0);
  }
  RecordedKernel kernel_{kD1};
};

TEST_F(KernelClockTest, AnswersAloneBoundIt) {
  kernel_.Page(0, PageBuilder(1500).Switch(0, 0, 0, 7, "web").Page());
  Answer(1000, 9'000'500, 1400);
  Answer(2000, 9'001'900, 2900);
  const KernelClock clock = Find(/*with_trace=*/false);
  EXPECT_THAT(clock.ranges, ElementsAre(OffsetRange{8'999'100, 8'999'500}));
  EXPECT_EQ(clock.offset, 8'999'300);
  EXPECT_EQ(clock.answers, 2U);
  EXPECT_EQ(clock.untraced, 1U);
}

// The first event was in the first segment, the second one must not be in the exit after it.
TEST_F(KernelClockTest, EventsAreInTheGuest) {
  Answer(1000, 1'001'000, 2000);  // 999,000 to 1,000,000
  kernel_.Page(0, PageBuilder(1'001'310)
                      .Switch(0, 0, 0, 7, "web")     // [999,310, 1,000,110]
                      .Switch(590, 7, 1, 8, "db")    // 1,001,900: [999,900, 1,000,700] and
                                                     // [998,900, 999,300]
                      .Switch(1800, 8, 1, 7, "web")  // 1,003,700: [999,700, 1,000,500]
                      .Page());
  const KernelClock clock = Find();
  EXPECT_THAT(clock.ranges, ElementsAre(OffsetRange{999'900, 1'000'000}));
  EXPECT_EQ(clock.offset, 999'950);
  EXPECT_EQ(clock.inside, 3U);
  EXPECT_EQ(clock.outside + clock.untraced, 0U);
}

TEST_F(KernelClockTest, CountsEventsThatContradict) {
  Answer(1000, 1000, 1000);  // the host's own TSC
  kernel_.Page(0, PageBuilder(500)
                      .Switch(0, 0, 0, 7, "web")     // before the trace
                      .Switch(1000, 7, 1, 8, "db")   // 1500
                      .Switch(800, 8, 1, 7, "web")   // 2300: Xen handled an exit
                      .Switch(1500, 7, 1, 8, "db")   // 3800
                      .Switch(5000, 8, 1, 7, "web")  // behind its end
                      .Page());
  const KernelClock clock = Find();
  EXPECT_EQ(clock.offset, 0);
  EXPECT_EQ(clock.inside, 2U);
  EXPECT_EQ(clock.outside, 1U);
  EXPECT_EQ(clock.untraced, 2U);
}

TEST_F(KernelClockTest, CountsAnswersThatContradict) {
  kernel_.Page(0, PageBuilder(1500).Switch(0, 0, 0, 7, "web").Page());
  Answer(1000, 1500, 2000);
  Answer(1000, 9500, 2000);
  Answer(2000, 1500, 1000);  // time went back
  const KernelClock clock = Find();
  EXPECT_EQ(clock.answers, 1U);
  EXPECT_EQ(clock.bad_answers, 2U);
  EXPECT_EQ(clock.offset, 0);
}

}  // namespace
}  // namespace xenoscope::guests
