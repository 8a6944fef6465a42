#include "report/shutdown/shutdown_view.h"

#include <gtest/gtest.h>

#include "report/table/table_csv.h"

namespace xenoscope::report {
namespace {

TEST(ShutdownView, ProcessesThatTookLongestComeFirst) {
  guests::Shutdown shutdown;
  shutdown.phases = {{.name = "user space", .when = {Tsc{1000}, Tsc{9000}}, .times = {}}};
  shutdown.kernel.processes = {
      {.pid = 7, .name = "umount", .when = {Tsc{1000}, Tsc{1500}}, .ended = true},
      {.pid = 8,
       .name = "nginx",
       .when = {Tsc{2000}, Tsc{5000}},
       .first_signal = 15,
       .last_signal = 9,
       .ended = true},
      {.pid = 9,
       .name = "stuck",
       .when = {Tsc{3000}, Tsc{9000}},
       .first_signal = 15,
       .last_signal = 15}};
  const PhaseOptions options{.clock = {1000, ClockSource::kGiven}};
  EXPECT_EQ(ToCsv(ShutdownProcessesTable(shutdown, options)),
            "process,signals,begin_s,wall_s,ended\r\n"
            "stuck (9),SIGTERM,2,6,no\r\n"
            "nginx (8),\"SIGTERM, SIGKILL\",1,3,yes\r\n"
            "umount (7),,0,0.5,yes\r\n");
}

}  // namespace
}  // namespace xenoscope::report
