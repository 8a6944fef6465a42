// The phases of a Linux guest's shutdown by its kernel's events, and the programs that it ended.
//
//   the first sched_process_exec of poweroff, reboot, halt or shutdown; without one: the first
//   SIGTERM of thread 1, or what comes first of the following ---> "user space"
//   sched_process_exec of thread 1 ---> the name of the program: "systemd-shutdown"
//   sys_enter_reboot ---> "kernel"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "guests/ftrace/kernel_trace.h"

namespace xenoscope::guests {

struct ShutdownPhase {
  std::string name;
  Tsc begin;  // the end is the next one's begin
};

// A process that was asked to end during the shutdown, or that was begun then.
struct EndedProcess {
  uint32_t pid = 0;
  std::string name;
  TscRange when;  // from the first signal, or from its begin, to its end
  // The first signal that asked it to end, and the last one; 0: none, it began in the shutdown.
  uint8_t first_signal = 0;
  uint8_t last_signal = 0;
  bool ended = false;  // else `when` ends with the events
};

struct ShutdownPhases {
  // In the order of time, contiguous. None: the events show no shutdown.
  std::vector<ShutdownPhase> phases;
  std::vector<EndedProcess> processes;  // in the order of their ends
  Tsc last_event;                       // of all that the kernel recorded
  bool has_reboot = false;              // the last phase is "kernel"
  uint64_t processes_left_out = 0;      // beyond kMaxProcesses
  uint64_t losses = 0;                  // times that events were lost
  KernelTraceFaults faults;

  // What one kernel may have.
  static constexpr size_t kMaxPhases = 64;
  static constexpr size_t kMaxProcesses = size_t{1} << 16;
  static constexpr size_t kMaxName = 64;
};

// Finds the phases. The shutdown begins where a thread first executes the program `from`, a path or
// the last part of one, if that is not empty. Errors (NotFound): none does. O(events * log CPUs).
absl::StatusOr<ShutdownPhases> FindShutdownPhases(const KernelTrace& trace, const EventClock& clock,
                                                  std::string_view from);

}  // namespace xenoscope::guests
