// Events as Linux counts them: hardware's by their names in libpfm4, and Linux's own.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/event_spec.h"
#include "sampler/perf/perf_calls.h"

namespace xenoscope::sampler {

struct PerfEvent {
  std::string name;
  perf_event_attr attributes{};  // what is counted, in which modes, and how often a sample is taken
  bool is_timer = false;         // time itself, of a timer of Linux: the period is in nanoseconds
};

// An event of Linux itself, which every machine has.
struct LinuxEvent {
  std::string_view name;
  uint64_t config;  // enum perf_sw_ids
  std::string_view text;
};
std::span<const LinuxEvent> LinuxEvents();

// Errors (NotFound): no such event.
absl::StatusOr<PerfEvent> ResolvePerfEvent(const EventSpec& spec);

// A thousand samples a second: of cycles where counters count, else by Linux's timer.
PerfEvent DefaultPerfEvent(PerfCalls& calls);

// Whether the processor's counters are there and count: in virtual machines they often do not.
bool CountersCount(PerfCalls& calls);

// Whether this process may sample the whole system; and if so, whether counters count. Errors:
// those of PerfError.
absl::StatusOr<bool> ProbePerf(PerfCalls& calls);

}  // namespace xenoscope::sampler
