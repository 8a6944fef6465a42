#include "guests/boot/boot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/unit/guests/boot/boot_pages.h"
#include "tests/unit/guests/phases/phase_line.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;

constexpr DomainId kD1{1};

// d1 is created at 500, and runs from 1000 on: in Xen in [1500, 1600) and [2050, 2150), on no pCPU
// in [2500, 2600), blocked in [2700, 2900).
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kDom0DomAdd, 500, {1}), Rec(kOfflineToRunnable, 800, {kD1V0}),
          Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kVmentry, 1100, {}),
          Rec(kVmexit64, 1500, {kVmexitNpf, 0x1000, 0}), Rec(kVmentry, 1600, {}),
          Rec(kVmexit64, 2050, {kVmexitCpuid, 0x1000, 0}), Rec(kVmentry, 2150, {}),
          Rec(kVmexit64, 2500, {kVmexitIntr, 0x1000, 0}), Rec(kRunningToRunnable, 2500, {kD1V0}),
          Rec(kRunnableToRunning, 2600, {kD1V0}), Rec(kVmentry, 2600, {}),
          Rec(kVmexit64, 2700, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 2700, {kD1V0}),
          Rec(kBlockedToRunnable, 2900, {kD1V0}), Rec(kRunnableToRunning, 2900, {kD1V0}),
          Rec(kVmentry, 2900, {}), Rec(kVmexit64, 4000, {kVmexitHlt, 0x1000, 0}),
          Rec(kRunningToBlocked, 4000, {kD1V0})});
  return xen;
}

class BootTest : public testing::Test {
 protected:
  BootTest() {
    kernel_.writer().AppendTraceFormats(kD1, kBootFormats);
    kernel_.Page(0, BootPage(1200)
                        .Level(1200, 1, "core")
                        .Call(1400, 2100, 0x30)
                        .Level(2400, 1, "late")
                        .Call(2450, 2800, 0x70)
                        .Exec(2950, 1, "/init")
                        .Exec(3200, 7, "/bin/sh")
                        .Page());
  }
  Boot Follow(const trace::TraceBuilder& bytes = Xen()) {
    auto phases = FindBootPhases(kernel_.Open(), EventClock::Fixed(0), {}, "");
    EXPECT_TRUE(phases.ok()) << phases.status();
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    EXPECT_TRUE(xen.ok()) << xen.status();
    auto boot = FollowBoot(kD1, *std::move(phases), *xen);
    EXPECT_TRUE(boot.ok()) << boot.status();
    return *std::move(boot);
  }
  RecordedKernel kernel_{kD1};
};

TEST_F(BootTest, EveryCycleIsInOnePhaseAndState) {
  const Boot boot = Follow();
  std::vector<std::string> lines;
  for (const Phase& phase : boot.phases) lines.push_back(PhaseLine(phase));
  EXPECT_THAT(
      lines,
      ElementsAre("build 500-1000: guest 0 Xen 0 stolen 200 blocked 0 lost 0 untraced 300",
                  "entry 1000-1200: guest 100 Xen 100 stolen 0 blocked 0 lost 0 untraced 0",
                  "core 1200-2400: guest 1000 Xen 200 stolen 0 blocked 0 lost 0 untraced 0",
                  "late 2400-2800: guest 200 Xen 0 stolen 100 blocked 100 lost 0 untraced 0",
                  "after late 2800-2950: guest 50 Xen 0 stolen 0 blocked 100 lost 0 untraced 0",
                  "user space 2950-3200: guest 250 Xen 0 stolen 0 blocked 0 lost 0 untraced 0"));
  EXPECT_TRUE(boot.begins_in_trace);
}

TEST_F(BootTest, CountsWhatOfTheTraceCouldNotBeRead) {
  EXPECT_EQ(Follow().unread.damages, 0U);
  EXPECT_EQ(Follow(Xen().Window(1, {{0, 0, 0}})).unread.damaged_bytes, 12U);
}

TEST_F(BootTest, XenIsByReason) {
  const Boot boot = Follow();
  const std::vector<PhaseExit>& core = boot.phases[2].times.exits;
  ASSERT_EQ(core.size(), 2);
  EXPECT_EQ(core[0].reason, trace::kVmexitCpuid);
  EXPECT_EQ(core[1].reason, trace::kVmexitNpf);
  EXPECT_EQ(core[1].time, 100);
  EXPECT_EQ(core[1].exits, 1);
}

TEST_F(BootTest, InitcallsHaveTheirTimes) {
  const Boot boot = Follow();
  ASSERT_EQ(boot.initcall_times.size(), 2);
  // [1400, 2100): in Xen in [1500, 1600) and from 2050 on.
  EXPECT_THAT(boot.initcall_times[0].states, ElementsAre(550, 150, 0, 0, 0, 0));
  EXPECT_THAT(boot.initcall_times[1].states, ElementsAre(150, 0, 100, 100, 0, 0));
  EXPECT_EQ(boot.initcalls[2], 1);
}

TEST_F(BootTest, TraceThatBeginsLaterHasTheRest) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kVmexit64, 2000, {kVmexitNpf, 0x1000, 0}), Rec(kVmentry, 2100, {}),
                 Rec(kRunningToBlocked, 2300, {kD1V0}), Rec(kBlockedToRunnable, 9000, {kD1V0})});
  const Boot boot = Follow(xen);
  EXPECT_FALSE(boot.begins_in_trace);
  EXPECT_EQ(boot.phases.front().when.begin, Tsc{1200});
  Cycles untraced = 0;
  for (const Phase& phase : boot.phases) {
    EXPECT_EQ(phase.times.Sum(), phase.when.Length()) << phase.name;
    untraced += phase.times[PhaseState::kUntraced];
  }
  EXPECT_GE(untraced, 800);
}

// A segment goes on where the scheduler chooses its vCPU again, and its timeslice does not.
TEST_F(BootTest, EntryBeginsWithTheFirstTimeslice) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kOfflineToRunnable, 800, {kD1V0}), Rec(kRunnableToRunning, 1000, {kD1V0}),
                 Rec(kContinueRunning, 1100, {kD1V0}), Rec(kRunningToRunnable, 1150, {kD1V0}),
                 Rec(kRunnableToRunning, 1180, {kD1V0}), Rec(kRunningToBlocked, 4000, {kD1V0})});
  const Boot boot = Follow(xen);
  EXPECT_EQ(PhaseLine(boot.phases[1]),
            "entry 1000-1200: guest 170 Xen 0 stolen 30 blocked 0 lost 0 untraced 0");
}

TEST_F(BootTest, OtherDomainsTimeIsNotPartOfIt) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kRunnableToRunning, 1000, {Vcpu(2, 0)}), Rec(kRunningToBlocked, 4000, {Vcpu(2, 0)})});
  for (const Phase& phase : Follow(xen).phases) {
    EXPECT_EQ(phase.times[PhaseState::kUntraced], phase.when.Length()) << phase.name;
  }
}

TEST(SwitchesOfBoot, TheVcpuThatBootsRunsThePhases) {
  Boot boot;
  boot.phases = {{.name = "build", .when = {Tsc{100}, Tsc{200}}, .times = {}},
                 {.name = "core", .when = {Tsc{200}, Tsc{300}}, .times = {}},
                 {.name = "late", .when = {Tsc{300}, Tsc{400}}, .times = {}}};
  boot.kernel.cpus = {{Tsc{200}, 0}, {Tsc{250}, 2}, {Tsc{350}, 0}};
  boot.kernel.end = Tsc{400};
  PhaseSwitches switches = SwitchesOf(DomainId{5}, boot);
  std::vector<std::string> lines;
  while (const auto next = switches.Next(Tsc{std::numeric_limits<uint64_t>::max()})) {
    lines.push_back(fmt::format("{} {} {}", next->at.value, ToString(next->vcpu),
                                switches.ThreadName(next->thread)));
  }
  EXPECT_THAT(lines, ElementsAre("100 d5v0 build", "200 d5v0 core", "250 d5v0 ", "250 d5v2 core",
                                 "300 d5v2 late", "350 d5v2 ", "350 d5v0 late", "400 d5v0 "));
}

TEST(SwitchesOfBoot, ComeWhenAskedFor) {
  Boot boot;
  boot.phases = {{.name = "core", .when = {Tsc{200}, Tsc{300}}, .times = {}}};
  boot.kernel.end = Tsc{300};
  PhaseSwitches switches = SwitchesOf(DomainId{5}, boot);
  EXPECT_FALSE(switches.Next(Tsc{200}));
  EXPECT_TRUE(switches.Next(Tsc{201}));
  EXPECT_FALSE(switches.Next(Tsc{300}));
}

}  // namespace
}  // namespace xenoscope::guests
