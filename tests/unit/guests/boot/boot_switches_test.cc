#include "guests/boot/boot_switches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;

TEST(BootSwitches, TheVcpuThatBootsRunsThePhases) {
  Boot boot;
  boot.parts = {{.name = "build", .when = {Tsc{100}, Tsc{200}}, .times = {}},
                {.name = "core", .when = {Tsc{200}, Tsc{300}}, .times = {}},
                {.name = "late", .when = {Tsc{300}, Tsc{400}}, .times = {}}};
  boot.kernel.cpus = {{Tsc{200}, 0}, {Tsc{250}, 2}, {Tsc{350}, 0}};
  boot.kernel.end = Tsc{400};
  BootSwitches switches(DomainId{5}, boot);
  std::vector<std::string> lines;
  while (const auto next = switches.Next(Tsc{std::numeric_limits<uint64_t>::max()})) {
    lines.push_back(fmt::format("{} {} {}", next->at.value, ToString(next->vcpu),
                                switches.ThreadName(next->thread)));
  }
  EXPECT_THAT(lines, ElementsAre("100 d5v0 build", "200 d5v0 core", "250 d5v0 ", "250 d5v2 core",
                                 "300 d5v2 late", "350 d5v2 ", "350 d5v0 late", "400 d5v0 "));
}

TEST(BootSwitches, ComeWhenAskedFor) {
  Boot boot;
  boot.parts = {{.name = "core", .when = {Tsc{200}, Tsc{300}}, .times = {}}};
  boot.kernel.end = Tsc{300};
  BootSwitches switches(DomainId{5}, boot);
  EXPECT_FALSE(switches.Next(Tsc{200}));
  EXPECT_TRUE(switches.Next(Tsc{201}));
  EXPECT_FALSE(switches.Next(Tsc{300}));
}

}  // namespace
}  // namespace xenoscope::guests
