#include "symbolizer/text/initcalls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::symbolizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "0x10 net_init core", an initcall each.
std::vector<std::string> Read(std::string_view kallsyms) {
  std::vector<std::string> lines;
  for (const Initcall& initcall : ReadInitcalls(kallsyms)) {
    lines.push_back(fmt::format("{:#x} {} {}", initcall.address, initcall.function,
                                fmt::join(initcall.levels, ",")));
  }
  return lines;
}

TEST(Initcalls, HaveTheLevelsOfTheirEntries) {
  struct {
    const char* entry;
    const char* want;
  } const kCases[] = {
      {"__initcall__kmod_core__391_2229_init_hw_perf_eventsearly", "init_hw_perf_events early"},
      {"__initcall__kmod_socket__1_3206_sock_init0", "sock_init pure"},
      {"__initcall__kmod_trace_kprobe__652_1950_init_kprobe_trace_early1",
       "init_kprobe_trace_early core"},
      {"__initcall__kmod_core__1_2_net_waits1s", "net_waits core_sync"},
      {"__initcall__kmod_ipv6__1_2_ipv66", "ipv6 device"},
      {"__initcall__kmod_initramfs__1_2_populate_rootfsrootfs", "populate_rootfs rootfs"},
      {"__initcall__kmod_trace__461_10558_late_trace_init7s", "late_trace_init late_sync"},
      {"__initcall__kmod_hvc_console__1_246_hvc_console_initcon", "hvc_console_init console"},
      {"__initcall__kmod_a__b__3_4_c__5_d7", "c__5_d late"},
      {"__initcall_hvc_init6", "hvc_init device"},  // before Linux 5.10
  };
  for (const auto& [entry, want] : kCases) {
    const std::string function(want, std::string_view(want).find(' '));
    const auto text = fmt::format("ffff d {}\n0010 t {}\n", entry, function);
    EXPECT_THAT(Read(text), ElementsAre(fmt::format("0x10 {}", want))) << entry;
  }
}

TEST(Initcalls, FunctionsOfOneNameHaveAllLevels) {
  EXPECT_THAT(Read("20 t init\n10 t init\n"
                   "30 d __initcall__kmod_a__1_2_init4\n"
                   "40 d __initcall__kmod_b__3_4_init6\n"),
              ElementsAre("0x10 init subsys,device", "0x20 init subsys,device"));
}

TEST(Initcalls, WhatIsNoneIsLeftOut) {
  EXPECT_THAT(Read("10 d __initcall_start\n20 t start\n"
                   "30 d str__initcall__trace_system_name\n40 t __initcall__kmod_a__1_2_\n"
                   "50 d __initcall__kmod_nothing7\n60 t nothing\n"),
              IsEmpty());
  EXPECT_THAT(Read("10 t init\t[module]\n20 d __initcall__kmod_a__1_2_init6\n"), IsEmpty());
  EXPECT_THAT(Read("nonsense\n\n"), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::symbolizer
