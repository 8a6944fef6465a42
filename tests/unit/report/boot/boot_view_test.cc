#include "report/boot/boot_view.h"

#include <gtest/gtest.h>

#include <optional>

#include "report/table/table_csv.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using guests::PhaseState;
using guests::PhaseTimes;

PhaseTimes Times(Cycles guest, Cycles xen, Cycles stolen) {
  PhaseTimes times;
  times.states[static_cast<size_t>(PhaseState::kGuest)] = guest;
  times.states[static_cast<size_t>(PhaseState::kXen)] = xen;
  times.states[static_cast<size_t>(PhaseState::kStolen)] = stolen;
  if (xen > 0) times.exits = {{.reason = 0x72, .time = xen, .exits = 3}};
  return times;
}

// 1000 cycles are a second.
guests::Boot ABoot() {
  guests::Boot boot;
  boot.phases = {
      {.name = "build", .when = {Tsc{0}, Tsc{0}}, .times = {}},
      {.name = "entry", .when = {Tsc{0}, Tsc{1000}}, .times = Times(900, 100, 0)},
      {.name = "core", .when = {Tsc{1000}, Tsc{4000}}, .times = Times(2000, 500, 500)},
      {.name = "user space", .when = {Tsc{4000}, Tsc{5000}}, .times = Times(1000, 0, 0)}};
  boot.initcalls = {std::nullopt, std::nullopt, 2, std::nullopt};
  boot.kernel.initcalls = {
      {.address = 0x10,
       .function = "short_init",
       .phase = 0,
       .when = {Tsc{1000}, Tsc{1500}},
       .result = -19,
       .finished = true,
       .by_boot = true},
      {.address = 0x20,
       .function = "",
       .phase = 0,
       .when = {Tsc{1500}, Tsc{4000}},
       .finished = true,
       .by_boot = true},
      {.address = 0x30, .function = "", .phase = 1, .when = {Tsc{4500}, Tsc{4600}}}};
  boot.initcall_times = {Times(500, 0, 0), Times(1500, 500, 500), {}};
  return boot;
}

PhaseOptions Options(bool text) {
  return {.clock = {1000, ClockSource::kGiven}, .vendor = trace::Vendor::kSvm, .text = text};
}

TEST(BootView, PhasesAddUpToTheBoot) {
  EXPECT_EQ(
      ToText(BootPhasesTable(ABoot(), Options(true)), {}),
      "phase        begins    takes       guest      in Xen      stolen  VM exits  initcalls\n"
      "build       0.000 s  0.000 s     0.000 s     0.000 s     0.000 s         0\n"
      "entry       0.000 s  1.000 s  900.000 ms  100.000 ms     0.000 s         3\n"
      "core        1.000 s  3.000 s     2.000 s  500.000 ms  500.000 ms         3          2\n"
      "user space  4.000 s  1.000 s     1.000 s     0.000 s     0.000 s         0\n"
      "\n"
      "boot        0.000 s  5.000 s     3.900 s  600.000 ms  500.000 ms         6          2\n");
}

TEST(BootView, DataHaveAllColumns) {
  EXPECT_EQ(ToCsv(BootPhasesTable(ABoot(), Options(false))),
            "phase,begin_s,wall_s,guest_s,xen_s,stolen_s,blocked_s,untraced_s,trace_lost_s,exits,"
            "initcalls\r\n"
            "build,0,0,0,0,0,0,0,0,0,\r\n"
            "entry,0,1,0.9,0.1,0,0,0,0,3,\r\n"
            "core,1,3,2,0.5,0.5,0,0,0,3,2\r\n"
            "user space,4,1,1,0,0,0,0,0,0,\r\n");
}

TEST(BootView, LongestInitcallsComeFirst) {
  EXPECT_EQ(ToCsv(BootInitcallsTable(ABoot(), Options(false))),
            "function,phase,begin_s,wall_s,guest_s,xen_s,stolen_s,blocked_s,untraced_s,"
            "trace_lost_s,exits,result\r\n"
            "0x20,core,1.5,2.5,1.5,0.5,0.5,0,0,0,3,0\r\n"
            "short_init,core,1,0.5,0.5,0,0,0,0,0,0,-19\r\n"
            "0x30,user space,4.5,0.1,,,,,,,,\r\n");
}

}  // namespace
}  // namespace xenoscope::report
