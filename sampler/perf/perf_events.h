// Events as Linux counts them: hardware events by libpfm4's names, and Linux's own.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_calls.h"

namespace xenoscope::sampler {

// Linux's timers have their periods in ns.
inline constexpr uint64_t kNanosecondsInSecond = 1'000'000'000;

struct PerfEvent {
  std::string name;
  perf_event_attr attributes{};  // what is counted, in which modes, and how often a sample is taken
  bool is_timer = false;         // whether a timer of Linux is the event: the period is in ns
  ModeSet modes = kAllModes;     // modes that were requested
};

// An event of Linux itself, which every machine has.
struct LinuxEvent {
  std::string_view name;
  uint64_t config;  // a value of enum perf_sw_ids
  std::string_view text;
};
std::span<const LinuxEvent> LinuxEvents();

// Returns the event of a request. Errors (NotFound): no such event.
absl::StatusOr<PerfEvent> ResolvePerfEvent(const EventSpec& spec);

// Returns whether branch records by calls can come with the samples of counters (record
// --call-graph lbr).
bool RecordsCalls(PerfCalls& calls);

// Returns an event with 1000 samples a second: cycles where counters count, else Linux's timer.
PerfEvent DefaultPerfEvent(PerfCalls& calls);

// Returns whether the processor's counters exist and count; in virtual machines they often do not.
bool CountersCount(PerfCalls& calls);

// Returns whether counters count, if this process may sample the whole system. Errors: those of
// PerfError.
absl::StatusOr<bool> ProbePerf(PerfCalls& calls);

}  // namespace xenoscope::sampler
