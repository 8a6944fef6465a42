// Names of hardware events and what a counter must be programmed with for them, by libpfm4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// One event as the user asks for it and as a counter takes it.
struct PmuEvent {
  std::string name;        // as given, without the period
  uint32_t code = 0;       // event select
  uint32_t unit_mask = 0;  // unit mask
  uint64_t period = 0;     // counts between two samples
};

// xenoprof's counters are 32 bits wide on some models and take only the lower 31 bits of a period.
inline constexpr uint64_t kMaxPeriod = (uint64_t{1} << 31) - 1;
// Below this a machine does little but take samples.
inline constexpr uint64_t kMinPeriod = 500;

// "NAME:PERIOD", where NAME is libpfm4's event with its unit masks ("cpu_clk_unhalted",
// "amd64_fam15h_interlagos::data_cache_misses:dc_miss_streaming_store") or a raw code "rUUEE"
// (hexadecimal unit mask and event select, as perf's). Without "MODEL::" the events of this
// machine's processor are meant.
// Errors (InvalidArgument, NotFound): what is wrong with it, and how to list the names.
absl::StatusOr<PmuEvent> ParseEvent(std::string_view text);

// The unhalted-cycles event of a CPU as xenoprof names it ("x86-64/family15h",
// "i386/arch_perfmon"), with a period that gives 1000 samples a second on a busy CPU of `cpu_hz`.
PmuEvent DefaultEvent(std::string_view xenoprof_cpu_type, uint64_t cpu_hz);

struct EventDescription {
  std::string name;  // as ParseEvent takes it, without the period
  std::string text;
};

// The events of the processors' PMUs that libpfm4 finds on this machine, whose name contains
// `filter` in any case. On a processor that it does not know: those of all processors, by their
// full names.
absl::StatusOr<std::vector<EventDescription>> ListEvents(std::string_view filter);

}  // namespace xenoscope::sampler
