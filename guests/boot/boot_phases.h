// The phases of a Linux kernel's boot, by its own events: the levels of its initcalls in their
// order, what is between them, and user space.
//
//   the first event, if it is none of initcalls ---> "kernel start"
//   initcall_level, initcall_start of another level ---> a level: "early", "core", "core_sync", ...
//   the last initcall_finish of the levels before the scheduler's ---> "after console", ...
//   the first sched_process_exec of thread 1 ---> "user space"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/initcalls.h"
#include "base/tsc.h"
#include "guests/ftrace/kernel_trace.h"

namespace xenoscope::guests {

struct BootPhase {
  std::string name;
  Tsc begin;              // the end is the next one's begin
  bool is_level = false;  // of initcalls
};

struct BootInitcall {
  static constexpr size_t kNoPhase = ~size_t{0};

  Address address = 0;      // of the function
  std::string function;     // empty: not known
  size_t phase = kNoPhase;  // index of the phase in which it began
  TscRange when;
  int32_t result = 0;     // what it returned
  bool finished = false;  // else `when` ends with the boot
  // Whether the thread that boots called it, else another one did: of modules, for example.
  bool by_boot = false;
};

// From `at` on the thread that boots is on this CPU.
struct BootCpu {
  Tsc at;
  uint32_t cpu = 0;
};

struct BootPhases {
  std::vector<BootPhase> phases;  // in the order of time, contiguous, the first at the first event
  std::vector<BootInitcall> initcalls;  // in the order of their begins
  std::vector<BootCpu> cpus;            // in the order of time, the first at the first event
  Tsc end;                              // of the last phase
  uint64_t initcalls_left_out = 0;      // beyond kMaxInitcalls
  bool lost_begin = false;              // events before the first one were lost
  uint64_t losses = 0;                  // times that events were lost after it
  FunctionEvents function_events;       // up to the end
  KernelTraceFaults faults;

  // What one kernel may have.
  static constexpr size_t kMaxPhases = 1024;
  static constexpr size_t kMaxInitcalls = size_t{1} << 16;
  static constexpr size_t kMaxMoves = size_t{1} << 20;  // of BootCpu
  static constexpr size_t kMaxName = 64;
};

// Finds the phases. `initcalls` are the kernel's, by
// address; without them the levels are those that events name. The boot ends with the last event,
// or where a thread first executes the program `until`, a path or the last part of one. Errors
// (NotFound): there are no events of initcalls; nothing executed `until`. O(events * log CPUs).
absl::StatusOr<BootPhases> FindBootPhases(const KernelTrace& trace, const EventClock& clock,
                                          std::span<const Initcall> initcalls,
                                          std::string_view until);

}  // namespace xenoscope::guests
