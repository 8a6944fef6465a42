#include "guests/shutdown/shutdown_phases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/guests/shutdown/shutdown_pages.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ShutdownPhasesTest : public testing::Test {
 protected:
  ShutdownPhasesTest() { kernel_.writer().AppendTraceFormats(kDom0, kShutdownFormats); }

  absl::StatusOr<ShutdownPhases> Find(std::string_view from = "") {
    return FindShutdownPhases(kernel_.Open(), EventClock::Fixed(0), from);
  }
  // "user space 1000", a phase each.
  std::vector<std::string> Phases(std::string_view from = "") {
    const auto found = Find(from);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> lines;
    for (const ShutdownPhase& phase : found->phases) {
      lines.push_back(fmt::format("{} {}", phase.name, phase.begin.value));
    }
    return lines;
  }
  // "20 1100-1500 15 9 ended".
  std::vector<std::string> Processes() {
    const auto found = Find();
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> lines;
    for (const EndedProcess& process : found->processes) {
      lines.push_back(fmt::format("{} {}-{} {} {}{}", process.pid, process.when.begin.value,
                                  process.when.end.value, process.first_signal, process.last_signal,
                                  process.ended ? " ended" : ""));
    }
    return lines;
  }

  RecordedKernel kernel_{kDom0};
};

TEST_F(ShutdownPhasesTest, BeginWithTheProgramThatShutsDown) {
  kernel_.Page(0, ShutdownPage(900)
                      .Exec(950, 1, "/sbin/init")
                      .Exec(1000, 30, "/sbin/poweroff")
                      .Signal(1100, 1, 20, kTerm, "nginx")
                      .Exec(2000, 1, "/lib/systemd/systemd-shutdown")
                      .Reboot(3000, 1, kPowerOff)
                      .Page());
  EXPECT_THAT(Phases(), ElementsAre("user space 1000", "systemd-shutdown 2000", "kernel 3000"));
  EXPECT_TRUE(Find()->has_reboot);
  EXPECT_EQ(Find()->last_event, Tsc{3000});
}

TEST_F(ShutdownPhasesTest, BeginWithTheFirstSignOfIt) {
  kernel_.Page(0, ShutdownPage(900)
                      .Signal(950, 7, 20, kTerm, "sh")
                      .Signal(1100, 1, 21, kTerm, "nginx")
                      .Reboot(3000, 1, kPowerOff)
                      .Page());
  EXPECT_THAT(Phases(), ElementsAre("user space 1100", "kernel 3000"));
}

TEST_F(ShutdownPhasesTest, BeginWhereTheUserSaysSo) {
  kernel_.Page(0, ShutdownPage(900)
                      .Exec(1000, 30, "/sbin/poweroff")
                      .Exec(1500, 31, "/usr/bin/last-backup")
                      .Reboot(3000, 1, kPowerOff)
                      .Page());
  EXPECT_THAT(Phases("last-backup"), ElementsAre("user space 1500", "kernel 3000"));
  EXPECT_THAT(Find("nothing").status().message(), HasSubstr("no thread executed nothing"));
}

TEST_F(ShutdownPhasesTest, OtherCommandsOfRebootAreNone) {
  kernel_.Page(0, ShutdownPage(900).Reboot(1000, 1, kCadOff).Exec(1100, 9, "/bin/sh").Page());
  EXPECT_THAT(Phases(), IsEmpty());
}

TEST_F(ShutdownPhasesTest, KernelAloneIsAPhase) {
  kernel_.Page(0, ShutdownPage(900).Reboot(1000, 1, kPowerOff).Page());
  EXPECT_THAT(Phases(), ElementsAre("kernel 1000"));
}

TEST_F(ShutdownPhasesTest, ProcessesEndAfterTheirFirstSignal) {
  constexpr uint64_t kThread = 0x10000;  // CLONE_THREAD
  kernel_.Page(0, ShutdownPage(900)
                      .Begin(910, 7, 40, "before")
                      .Exit(920, 40)
                      .Signal(930, 7, 41, kTerm, "asked before")
                      .Exec(1000, 30, "/sbin/poweroff")
                      .Signal(1100, 1, 20, kTerm, "slow")
                      .Signal(1110, 1, 21, kTerm, "quick")
                      .Signal(1120, 1, 22, 17, "child")  // SIGCHLD
                      .Begin(1130, 1, 50, "umount")
                      .Begin(1140, 1, 51, "thread", kThread)
                      .Exit(1150, 51)
                      .Exit(1200, 21)
                      .Exit(1210, 22)
                      .Exit(1220, 41)
                      .Exit(1300, 50)
                      .Signal(1400, 1, 20, kKill, "slow")
                      .Exit(1500, 20)
                      .Signal(1600, 1, 23, kTerm, "never")
                      .Signal(1610, 1, 2, kKill, "kthreadd", /*ignored=*/true)
                      .Exec(1700, 1, "/bin/last")
                      .Page());
  EXPECT_THAT(Processes(), ElementsAre("21 1110-1200 15 15 ended", "50 1130-1300 0 0 ended",
                                       "20 1100-1500 15 9 ended", "23 1600-1700 15 15"));
}

}  // namespace
}  // namespace xenoscope::guests
