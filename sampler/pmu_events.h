// Names of hardware events, and the configuration of a counter for each, by libpfm4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/event_spec.h"

namespace xenoscope::sampler {

// An event as a counter is programmed for it.
struct PmuEvent {
  std::string name;        // name as the user gave it
  uint32_t code = 0;       // event select
  uint32_t unit_mask = 0;  // unit mask
  uint64_t period = 0;     // counts between two samples
  // The modes in which samples are wanted.
  bool user = true;
  bool kernel = true;
  bool hypervisor = true;
};

// Returns "; did you mean NAME?", with an event of the processor that `name` belongs to, or of this
// machine's; empty when no name is close.
std::string SuggestEvent(std::string_view name);

// Limit of a period: xenoprof's counters are 32 bits wide on some models and take only the lower 31
// bits.
inline constexpr uint64_t kMaxPeriod = (uint64_t{1} << 31) - 1;
// Least period: below it a machine does little but take samples.
inline constexpr uint64_t kMinPeriod = 500;

// Returns the event for xenoprof, on a processor that it calls `cpu_type` ("x86-64/family15h";
// empty: not known yet) with a clock of `cpu_hz`. The name is "cycles" or "instructions", which all
// processors have, libpfm4's event with its unit masks
// ("amd64_fam15h_interlagos::data_cache_misses:dc_miss_streaming_store"; without "MODEL::" an event
// of this machine's processor), or a raw code. Errors (InvalidArgument, NotFound): what is wrong
// with it, and how to list the names.
absl::StatusOr<PmuEvent> ResolvePmuEvent(const EventSpec& spec, std::string_view cpu_type,
                                         uint64_t cpu_hz);

// Returns the event of unhalted cycles of a CPU with xenoprof's name ("x86-64/family15h",
// "i386/arch_perfmon"), and an odd period that gives 1013 samples a second on a busy CPU of
// `cpu_hz`: no divisor of a guest's tick.
PmuEvent DefaultEvent(std::string_view xenoprof_cpu_type, uint64_t cpu_hz);

// Returns Linux's tick rate (HZ, 100 to 1000 a second) with which samples of an event of cycles are
// in step: a tick is a multiple of the period, or the period of a tick, so that each sample meets
// the same phase of the guest's timer for thousands of ticks. 0 where there is none.
[[nodiscard]] int TickRateInStep(uint64_t period, uint64_t cpu_hz);

// Returns whether a name or a description contains the word, ignoring case.
bool ContainsWord(std::string_view name, std::string_view text, std::string_view word);

struct EventDescription {
  std::string name;  // name for ParseEventSpec, without the period
  std::string text;
  bool xenoprof = false;  // whether xenoprof can count it
};

// Returns the events of this machine's PMUs that libpfm4 knows and whose name or description
// contains `word`, ignoring case. On a processor that it does not know: those of all processors, by
// their full names.
absl::StatusOr<std::vector<EventDescription>> ListEvents(std::string_view word);

}  // namespace xenoscope::sampler
