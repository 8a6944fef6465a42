#include "guests/clock/kernel_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
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

std::vector<OffsetRange> RangesOf(const KernelClock& clock) {
  EXPECT_EQ(clock.epochs.size(), 1U);
  return clock.epochs.at(0).ranges;
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
  EXPECT_THAT(RangesOf(clock), ElementsAre(OffsetRange{8'999'100, 8'999'500}));
  EXPECT_EQ(clock.epochs.at(0).offset, 8'999'300);
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
  EXPECT_THAT(RangesOf(clock), ElementsAre(OffsetRange{999'900, 1'000'000}));
  EXPECT_EQ(clock.epochs.at(0).offset, 999'950);
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
  EXPECT_EQ(clock.epochs.at(0).offset, 0);
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
  EXPECT_EQ(clock.epochs.at(0).offset, 0);
}

// Returns the times of the CPU's events, as the host's.
std::vector<uint64_t> TimesOf(const KernelTrace& trace, const KernelClock& clock) {
  std::vector<uint64_t> times;
  CpuCursor cursor(trace, 0, clock.Events());
  while (cursor.Next()) times.push_back(cursor.at().value);
  EXPECT_EQ(cursor.faults().disordered, 0U);
  return times;
}

// Between 2600 and 2900 the guest set its TSC, which had been the host's, 700 back, or a million
// forward. The event after that was the first one of the new clock: with the old one it would have
// been in an exit, or long after the answers that show the new one.
TEST_F(KernelClockTest, AnEpochBeginsWhereTheGuestSetItsTsc) {
  for (const int64_t by : {int64_t{-700}, int64_t{1'000'000}}) {
    RecordedKernel kernel(kD1);
    const auto answer = [&kernel](uint64_t before, uint64_t guest, uint64_t after) {
      const recording::ClockAnswer given{before, guest, after};
      kernel.writer().AppendClockAnswers(kD1, {&given, 1});
    };
    const auto set = [by](uint64_t host) { return host + static_cast<uint64_t>(by); };
    answer(1000, 1300, 1400);
    answer(2600, 2650, 2700);
    answer(2900, set(2950), 3000);
    answer(3500, set(3600), 3650);
    kernel.Page(0, PageBuilder(1500).Switch(0, 0, 0, 7, "web").Switch(1100, 7, 1, 8, "db").Page());
    kernel.Page(0,
                PageBuilder(set(2950)).Switch(0, 8, 1, 7, "web").Switch(900, 7, 1, 8, "db").Page());
    const trace::TraceBuilder bytes = Xen();
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    ASSERT_TRUE(xen.ok()) << xen.status();
    const KernelTrace* const trace = &kernel.Open();
    const KernelClock clock = FindKernelClocks({&trace, 1}, &*xen).at(0);
    ASSERT_EQ(clock.epochs.size(), 2U);
    EXPECT_EQ(clock.epochs[0].offset, 0);
    EXPECT_EQ(clock.epochs[1].set_before, Tsc{3000});
    EXPECT_EQ(clock.answers, 4U);
    EXPECT_EQ(clock.bad_answers, 0U);
    EXPECT_EQ(clock.inside, 4U);
    EXPECT_THAT(clock.epochs[1].first_events, ElementsAre(3U));
    const auto width = static_cast<int64_t>(clock.epochs[1].Width());
    EXPECT_LE(width, 100);
    const int64_t error = by - clock.epochs[1].offset;
    EXPECT_LE(std::abs(error), width);
    EXPECT_THAT(TimesOf(*trace, clock),
                ElementsAre(1500U, 2600U, 2950U + static_cast<uint64_t>(error),
                            3850U + static_cast<uint64_t>(error)));
  }
}

// One answer that contradicts is an exception; a guest cannot begin epochs without end.
TEST_F(KernelClockTest, EpochsAreOfTwoAnswersAndLimited) {
  kernel_.Page(0, PageBuilder(1500).Switch(0, 0, 0, 7, "web").Page());
  Answer(1000, 1000, 1000);
  Answer(2000, 9000, 2000);
  Answer(3000, 3000, 3000);
  for (uint64_t i = 0; i < 2 * AnsweredClock::kMaxEpochs; ++i) {
    const uint64_t at = 4000 + i * 100;
    Answer(at, at + (i + 1) * 1'000'000, at);
    Answer(at + 50, at + 50 + (i + 1) * 1'000'000, at + 50);
  }
  const KernelClock clock = Find();
  EXPECT_EQ(clock.epochs.size(), AnsweredClock::kMaxEpochs);
  EXPECT_EQ(clock.answers + clock.bad_answers, 3 + 4 * AnsweredClock::kMaxEpochs);
  EXPECT_EQ(clock.answers, 2 * AnsweredClock::kMaxEpochs);
}

}  // namespace
}  // namespace xenoscope::guests
