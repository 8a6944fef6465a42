#include "guests/boot/boot_phases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/guests/boot/boot_pages.h"
#include "tests/unit/guests/recorded_kernel.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Initcall> kInitcalls{{0x10, "con_init", {"console"}},
                                       {0x20, "cpu_init", {"early"}},
                                       {0x30, "net_init", {"core"}},
                                       {0x31, "net_sync", {"core_sync"}},
                                       {0x50, "fs_init", {"fs"}},
                                       {0x51, "populate", {"rootfs"}},
                                       {0x60, "init", {"device", "core_sync"}}};

class BootPhasesTest : public testing::Test {
 protected:
  BootPhasesTest() { kernel_.writer().AppendTraceFormats(kDom0, kBootFormats); }

  absl::StatusOr<BootPhases> Find(std::string_view until = "") {
    return FindBootPhases(kernel_.Open(), EventClock::Fixed(offset_), initcalls_, until);
  }
  // "core 2100-2210", a phase each.
  std::vector<std::string> Phases(std::string_view until = "") {
    const auto boot = Find(until);
    EXPECT_TRUE(boot.ok()) << boot.status();
    std::vector<std::string> lines;
    if (!boot.ok()) return lines;
    for (size_t i = 0; i < boot->phases.size(); ++i) {
      const bool is_last = i + 1 == boot->phases.size();
      const Tsc end = is_last ? boot->end : boot->phases[i + 1].begin;
      lines.push_back(
          fmt::format("{} {}-{}", boot->phases[i].name, boot->phases[i].begin.value, end.value));
    }
    return lines;
  }

  RecordedKernel kernel_;
  std::vector<Initcall> initcalls_ = kInitcalls;
  int64_t offset_ = 0;
};

BootPage Usual() {
  return BootPage(1000)
      .Level(1200, 0, "console")
      .Start(1210, 0, 0x10)
      .Finish(1300, 0, 0x10)
      .Level(1700, 1, "early")
      .Call(1710, 1800, 0x20)
      .Level(2000, 1, "pure")
      .Level(2100, 1, "core")
      .Call(2110, 2200, 0x30)
      .Call(2210, 2300, 0x31)
      .Level(2400, 1, "fs")
      .Call(2410, 2450, 0x50)
      .Call(2460, 2500, 0x51)
      .Level(2600, 1, "device")
      .Call(2610, 2700, 0x60)
      .Exec(3000, 1, "/init")
      .Exec(3100, 7, "/usr/sbin/nginx")
      .Exec(3200, 8, "/bin/sh");
}

TEST_F(BootPhasesTest, AreTheLevelsAndWhatIsBetweenThem) {
  kernel_.Page(0, Usual().Page());
  EXPECT_THAT(Phases(),
              ElementsAre("console 1200-1300", "after console 1300-1700", "early 1700-1800",
                          "after early 1800-2000", "pure 2000-2100", "core 2100-2210",
                          "core_sync 2210-2400", "fs 2400-2460", "rootfs 2460-2600",
                          "device 2600-2700", "after device 2700-3000", "user space 3000-3200"));
}

TEST_F(BootPhasesTest, WithoutSymbolsAreThoseThatEventsName) {
  kernel_.Page(0, Usual().Page());
  initcalls_.clear();
  EXPECT_THAT(Phases(), ElementsAre("console 1200-1300", "after console 1300-1700",
                                    "early 1700-1800", "after early 1800-2000", "pure 2000-2100",
                                    "core 2100-2400", "fs 2400-2600", "device 2600-2700",
                                    "after device 2700-3000", "user space 3000-3200"));
}

TEST_F(BootPhasesTest, BeginWithTheFirstEvent) {
  kernel_.Page(0, BootPage(1000).Switch(1000, 0, 1).Level(1200, 1, "core").Page());
  EXPECT_THAT(Phases(), ElementsAre("kernel start 1000-1200", "core 1200-1200"));
}

TEST_F(BootPhasesTest, EndAtAProgram) {
  kernel_.Page(0, Usual().Page());
  EXPECT_THAT(Phases("nginx").back(), "user space 3000-3100");
  EXPECT_THAT(Phases("/bin/sh").back(), "user space 3000-3200");
  EXPECT_THAT(std::string(Find("apache2").status().message()),
              HasSubstr("no thread executed apache2"));
}

TEST_F(BootPhasesTest, AreOfTheHostsTime) {
  kernel_.Page(0, Usual().Page());
  offset_ = -1'000'000;
  EXPECT_EQ(Phases().back(), "user space 1003000-1003200");
}

TEST_F(BootPhasesTest, HaveInitcalls) {
  kernel_.Page(0, BootPage(1000)
                      .Level(1000, 1, "device")
                      .Start(1100, 1, 0x60)
                      .Finish(1200, 1, 0x60, -19)
                      .Exec(1300, 1, "/init")
                      .Start(1400, 9, 0x999)  // a module's
                      .Page());
  const auto boot = Find();
  ASSERT_TRUE(boot.ok()) << boot.status();
  ASSERT_EQ(boot->initcalls.size(), 2);
  const BootInitcall& first = boot->initcalls[0];
  EXPECT_EQ(first.function, "init");
  EXPECT_EQ(boot->phases[first.phase].name, "device") << "also of core_sync, which it is not now";
  EXPECT_EQ(first.when, (TscRange{Tsc{1100}, Tsc{1200}}));
  EXPECT_EQ(first.result, -19);
  EXPECT_TRUE(first.by_boot);
  const BootInitcall& module = boot->initcalls[1];
  EXPECT_THAT(module.function, IsEmpty());
  EXPECT_FALSE(module.by_boot);
  EXPECT_FALSE(module.finished);
  EXPECT_EQ(module.when, (TscRange{Tsc{1400}, Tsc{1400}}));
}

TEST_F(BootPhasesTest, FollowTheThreadOverCpus) {
  kernel_.Page(0, BootPage(1000).Level(1000, 1, "device").Switch(1500, 1, 0).Page());
  kernel_.Page(1, BootPage(1000).Switch(1600, 0, 1).Call(1700, 1800, 0x60).Page());
  const auto boot = Find();
  ASSERT_TRUE(boot.ok()) << boot.status();
  ASSERT_EQ(boot->cpus.size(), 2);
  EXPECT_EQ(boot->cpus[1].at, Tsc{1600});
  EXPECT_EQ(boot->cpus[1].cpu, 1);
}

TEST_F(BootPhasesTest, LossesAreCounted) {
  kernel_.Page(0, BootPage(1000).Level(1000, 1, "device").Page(/*is_lossy=*/true));
  kernel_.Page(0, BootPage(2000).Call(2100, 2200, 0x60).Page(/*is_lossy=*/true));
  const auto boot = Find();
  ASSERT_TRUE(boot.ok()) << boot.status();
  EXPECT_TRUE(boot->lost_begin);
  EXPECT_EQ(boot->losses, 1);
}

TEST_F(BootPhasesTest, NeedInitcalls) {
  kernel_.Page(0, BootPage(1000).Switch(1000, 1, 7).Page());
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(BootPhasesTest, AreLimited) {
  // A guest that says a new level with each event.
  for (int i = 0; i < 20; ++i) {
    BootPage page(1000 + i);
    for (int j = 0; j < 80; ++j) page.Level(1000 + i, 1, fmt::format("level {}", i * 80 + j));
    kernel_.Page(0, page.Page());
  }
  const auto boot = Find();
  ASSERT_TRUE(boot.ok()) << boot.status();
  EXPECT_EQ(boot->phases.size(), BootPhases::kMaxPhases);
}

}  // namespace
}  // namespace xenoscope::guests
