#include "guests/clock/claimed_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "recording/sample_format.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using recording::CpuTimesEntry;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr DomainId kGuest{1};
constexpr VcpuRef kGuestV0{kGuest, VcpuId{0}};
// 10 cycles are 1 s, so that few cycles are more than the steps of claims.
constexpr Clock kSlow{.hz = 10};
constexpr uint64_t kOffset = 9'000'000;  // guest TSC - host TSC

// d1v0 runs in [1000, 2000), waits until 2500, runs until 4100 and is blocked then.
trace::TraceBuilder XenOfClaims() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToRunnable, 2000, {kD1V0}),
                 Rec(kRunnableToRunning, 2500, {kD1V0}), Rec(kRunningToBlocked, 4100, {kD1V0}),
                 Rec(kBlockedToRunnable, 5000, {kD1V0})});
  return xen;
}

class ClaimedTimesTest : public testing::Test {
 protected:
  // The guest read its /proc/stat in [at, at + 10) of the host's TSC.
  void Says(uint64_t at, CpuTimesEntry entry) {
    entry.before = kOffset + at;
    entry.after = kOffset + at + 10;
    kernel_.writer().AppendCpuTimes(kGuest, {Tsc{at - 50}, Tsc{at - 50}, Tsc{at + 50}},
                                    {&entry, 1});
  }
  Claims Compare(bool has_xen = true) {
    kernel_.Page(0, PageBuilder(kOffset + 1500).Switch(0, 0, 0, 7, "web").Page());
    const trace::TraceBuilder bytes = XenOfClaims();
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    EXPECT_TRUE(xen.ok()) << xen.status();
    KernelClock clock{.domain = kGuest, .epochs = {}};
    ClockEpoch epoch;
    epoch.ranges = {{kOffset - 5, kOffset + 5}};
    epoch.offset = kOffset;
    clock.epochs.push_back(epoch);
    const KernelTrace* const trace = &kernel_.Open();
    auto claims = CompareClaims({&trace, 1}, {&clock, 1}, kSlow, has_xen ? &*xen : nullptr);
    EXPECT_TRUE(claims.ok()) << claims.status();
    return claims.ok() ? *claims : Claims{};
  }
  RecordedKernel kernel_{kGuest};
};

TEST_F(ClaimedTimesTest, AreOfTheSameTimeAsWhatIsTrue) {
  Says(1800, {.busy = 500, .idle = 100, .steal = 7});
  Says(3000, {.busy = 600, .idle = 110, .steal = 7});  // only the first and the last one count
  Says(4500, {.busy = 900, .idle = 150, .steal = 8});
  const Claims claims = Compare();
  EXPECT_THAT(claims.left_out, IsEmpty());
  ASSERT_EQ(claims.vcpus.size(), 1U);
  const ClaimedTimes& vcpu = claims.vcpus[0];
  EXPECT_EQ(vcpu.vcpu, kGuestV0);
  EXPECT_EQ(vcpu.range, (TscRange{Tsc{1800}, Tsc{4500}}));
  EXPECT_EQ(vcpu.readings, 20U);
  EXPECT_THAT((std::vector{vcpu.busy, vcpu.idle, vcpu.steal}), ElementsAre(400, 50, 1));
  EXPECT_THAT((std::vector{vcpu.ran, vcpu.waited, vcpu.blocked, vcpu.offline, vcpu.unknown}),
              ElementsAre(1800, 500, 400, 0, 0));
}

TEST_F(ClaimedTimesTest, IdleMayGiveBackWhatItWaitedForADisk) {
  Says(1800, {.idle = 100, .iowait = 50});
  Says(4500, {.idle = 110, .iowait = 20});
  EXPECT_EQ(Compare().vcpus.at(0).idle, 10U);
}

// A vCPU that waits for a pCPU after it was woken is idle and stolen: 2,700 cycles are 270 s.
TEST_F(ClaimedTimesTest, KindsMayBeMoreThanTheTimeTogether) {
  constexpr uint64_t kMost = 270'000'000'000;
  Says(1800, {});
  Says(4500, {.idle = kMost, .steal = kMost});
  const ClaimedTimes vcpu = Compare().vcpus.at(0);
  EXPECT_THAT((std::vector{vcpu.busy, vcpu.idle, vcpu.steal}), ElementsAre(0, kMost, kMost));
}

TEST_F(ClaimedTimesTest, NothingIsTrueWithoutXensTrace) {
  Says(1800, {.busy = 500});
  Says(4500, {.busy = 900});
  const Claims claims = Compare(/*has_xen=*/false);
  ASSERT_EQ(claims.vcpus.size(), 1U);
  EXPECT_EQ(claims.vcpus[0].busy, 400U);
  EXPECT_EQ(claims.vcpus[0].unknown, 2700U);
}

TEST_F(ClaimedTimesTest, WhatIsBehindTheTraceIsNotKnown) {
  Says(4500, {.busy = 1});
  Says(9000, {.busy = 2});
  const Claims claims = Compare();
  ASSERT_EQ(claims.vcpus.size(), 1U);
  EXPECT_EQ(claims.vcpus[0].blocked, 500U);
  EXPECT_EQ(claims.vcpus[0].unknown, 4000U);
}

struct BadReading {
  const char* why;
  uint64_t at;
  CpuTimesEntry entry;
  uint64_t came;
};

// A guest may say anything.
TEST_F(ClaimedTimesTest, ContradictionsAreLeftOut) {
  const BadReading cases[] = {
      {"goes back", 4500, {.busy = 4, .idle = 9}, 4500},
      {"contradicts its clock", 4500, {.busy = 6, .idle = 9}, 90'000},
      {"contradicts its clock", 1200, {.busy = 6, .idle = 9}, 1200},
      // 2,700 cycles are 270 s.
      {"is more than the time that went by", 4500, {.busy = 273'000'000'000, .idle = 9}, 4500},
  };
  for (const BadReading& each : cases) {
    kernel_ = RecordedKernel(kGuest);
    Says(1800, {.busy = 5, .idle = 9});
    CpuTimesEntry entry = each.entry;
    entry.before = kOffset + each.at;
    entry.after = entry.before + 10;
    const recording::DrainTimes came{Tsc{each.came - 50}, Tsc{each.came - 50}, Tsc{each.came + 50}};
    kernel_.writer().AppendCpuTimes(kGuest, came, {&entry, 1});
    const Claims claims = Compare();
    EXPECT_THAT(claims.vcpus, IsEmpty()) << each.why;
    EXPECT_THAT(claims.left_out, ElementsAre(LeftOutClaims{kGuestV0, each.why}));
  }
}

TEST_F(ClaimedTimesTest, OneReadingIsNone) {
  Says(1800, {.busy = 5});
  const Claims claims = Compare();
  EXPECT_THAT(claims.vcpus, IsEmpty());
  EXPECT_THAT(claims.left_out, ElementsAre(LeftOutClaims{kGuestV0, "was read only once"}));
}

TEST_F(ClaimedTimesTest, WhatGoesBackBetweenIsLeftOut) {
  Says(1800, {.busy = 5});
  Says(3000, {.busy = 4});
  Says(4500, {.busy = 6});
  EXPECT_THAT(Compare().left_out, ElementsAre(LeftOutClaims{kGuestV0, "goes back"}));
}

}  // namespace
}  // namespace xenoscope::guests
