#include "guests/shutdown/shutdown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/unit/guests/phases/phase_line.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/guests/shutdown/shutdown_pages.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DomainId kEnding{1};
constexpr uint32_t kRebootReason = 1;
constexpr uint32_t kSuspendReason = 2;

// d1v0 runs until 4000, in Xen in [1500, 1600) and from 3900 on, and is blocked in [2700, 2900);
// d1v1 is blocked but in [2000, 2100). Xen removes d1 at 5000.
trace::TraceBuilder TraceOfEnd(uint32_t reason = kRebootReason) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0,
             {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kVmentry, 1000, {}),
              Rec(kVmexit64, 1500, {kVmexitNpf, 0x1000, 0}), Rec(kVmentry, 1600, {}),
              Rec(kVmexit64, 2700, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 2700, {kD1V0}),
              Rec(kBlockedToRunnable, 2900, {kD1V0}), Rec(kRunnableToRunning, 2900, {kD1V0}),
              Rec(kVmentry, 2900, {}), Rec(kVmexit64, 3900, {kVmexitVmmcall, 0x1000, 0}),
              Rec(kSchedShutdown, 3950, {1, 0, reason}), Rec(kRunningToOffline, 4000, {kD1V0}),
              Rec(kDom0DomRem, 5000, {1}), Rec(kRunnableToRunning, 6000, {Vcpu(2, 0)})});
  xen.Window(
      1, {Rec(kBlockedToRunnable, 2000, {Vcpu(1, 1)}), Rec(kRunnableToRunning, 2000, {Vcpu(1, 1)}),
          Rec(kVmentry, 2000, {}), Rec(kVmexit64, 2100, {kVmexitHlt, 0x1000, 0}),
          Rec(kRunningToBlocked, 2100, {Vcpu(1, 1)}), Rec(kBlockedToRunnable, 5500, {Vcpu(2, 1)})});
  return xen;
}

class ShutdownTest : public testing::Test {
 protected:
  ShutdownTest() { kernel_.writer().AppendTraceFormats(kEnding, kShutdownFormats); }

  ShutdownPhases Phases(const ShutdownPage& page) {
    kernel_.Page(0, page.Page());
    auto phases = FindShutdownPhases(kernel_.Open(), EventClock::Fixed(0), "");
    EXPECT_TRUE(phases.ok()) << phases.status();
    return *std::move(phases);
  }
  static absl::StatusOr<Shutdown> Follow(ShutdownPhases phases,
                                         const trace::TraceBuilder& bytes = TraceOfEnd(),
                                         const std::vector<recording::DomainChange>& changes = {}) {
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    EXPECT_TRUE(xen.ok()) << xen.status();
    return FollowShutdown(kEnding, std::move(phases), changes, *xen);
  }
  static std::vector<std::string> Lines(const Shutdown& shutdown) {
    std::vector<std::string> lines;
    for (const Phase& phase : shutdown.phases) lines.push_back(PhaseLine(phase));
    return lines;
  }
  RecordedKernel kernel_{kEnding};
};

TEST_F(ShutdownTest, TimesAreOfAllVcpus) {
  const auto shutdown =
      Follow(Phases(ShutdownPage(1100).Exec(1200, 9, "/sbin/reboot").Reboot(3000, 1, 0x01234567)));
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  EXPECT_EQ(shutdown->how, recording::DomainChange::Kind::kRebooted);
  EXPECT_EQ(shutdown->guest_end, Tsc{4000});
  EXPECT_THAT(shutdown->vcpus, ElementsAre(VcpuId{0}, VcpuId{1}));
  EXPECT_THAT(
      Lines(*shutdown),
      ElementsAre("user space 1200-3000: guest 1600 Xen 100 stolen 0 blocked 1100 lost 0 untraced "
                  "800",
                  "kernel 3000-4000: guest 900 Xen 100 stolen 0 blocked 1000 lost 0 untraced 0",
                  "destroy 4000-5000: guest 0 Xen 0 stolen 0 blocked 2000 lost 0 untraced 0"));
}

TEST_F(ShutdownTest, WithoutTheRebootTheRestIsAPhase) {
  const auto shutdown =
      Follow(Phases(ShutdownPage(1100).Exec(1200, 9, "/sbin/reboot").Exec(2000, 1, "/bin/last")));
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  std::vector<std::string> names;
  for (const Phase& phase : shutdown->phases) names.push_back(phase.name);
  EXPECT_THAT(names, ElementsAre("user space", "last", "after last event", "destroy"));
}

TEST_F(ShutdownTest, CountsWhatOfTheTraceCouldNotBeRead) {
  EXPECT_EQ(Follow({})->unread.damages, 0U);
  EXPECT_EQ(Follow({}, TraceOfEnd().Window(2, {{0, 0, 0}}))->unread.damaged_bytes, 12U);
}

TEST_F(ShutdownTest, WithoutEventsItBeginsWithTheTrace) {
  const auto shutdown = Follow({});
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  ASSERT_EQ(shutdown->phases.size(), 2);
  EXPECT_EQ(shutdown->phases[0].name, "guest");
  EXPECT_EQ(shutdown->phases[0].when.end, Tsc{4000});
}

TEST_F(ShutdownTest, PollsSayHowItEndedWhereTheTraceDoesNot) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToOffline, 4000, {kD1V0}),
                 Rec(kRunnableToRunning, 6000, {Vcpu(2, 0)})});
  EXPECT_THAT(Follow({}, xen).status().message(), HasSubstr("did not end"));
  const auto shutdown =
      Follow({}, xen,
             {{recording::DomainChange::Kind::kCrashed, kEnding, std::nullopt, {Tsc{1}, Tsc{2}}}});
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  EXPECT_EQ(shutdown->how, recording::DomainChange::Kind::kCrashed);
  EXPECT_FALSE(shutdown->destroyed);
  EXPECT_THAT(Lines(*shutdown), ElementsAre("guest 1000-4000: guest 3000 Xen 0 stolen 0 blocked 0 "
                                            "lost 0 untraced 0"));
}

TEST_F(ShutdownTest, SuspendingIsNoShutdown) {
  const auto shutdown = Follow({}, TraceOfEnd(kSuspendReason));
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  EXPECT_EQ(shutdown->how, recording::DomainChange::Kind::kUnknown)
      << "it was destroyed all the same";
}

TEST_F(ShutdownTest, DomainThatTheTraceDoesNotHaveIsAnError) {
  trace::TraceBuilder xen;
  xen.Window(0, {trace::Rec(trace::kRunnableToRunning, 6000, {trace::Vcpu(2, 0)})});
  EXPECT_THAT(Follow({}, xen).status().message(), HasSubstr("nothing of it"));
}

TEST_F(ShutdownTest, AllVcpusRunThePhasesAsThreads) {
  Shutdown shutdown;
  shutdown.phases = {{.name = "kernel", .when = {Tsc{100}, Tsc{200}}, .times = {}}};
  shutdown.vcpus = {VcpuId{0}, VcpuId{2}};
  PhaseSwitches switches = SwitchesOf(DomainId{5}, shutdown);
  std::vector<std::string> lines;
  while (const auto next = switches.Next(Tsc{std::numeric_limits<uint64_t>::max()})) {
    lines.push_back(fmt::format("{} {} {}", next->at.value, ToString(next->vcpu),
                                switches.ThreadName(next->thread)));
  }
  EXPECT_THAT(lines, ElementsAre("100 d5v0 kernel", "100 d5v2 kernel", "200 d5v0 ", "200 d5v2 "));
}

}  // namespace
}  // namespace xenoscope::guests
