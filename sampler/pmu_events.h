// Names of hardware events and what a counter must be programmed with for them, by libpfm4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sampler/event_spec.h"

namespace xenoscope::sampler {

// One event as a counter takes it.
struct PmuEvent {
  std::string name;        // as the user gave it
  uint32_t code = 0;       // event select
  uint32_t unit_mask = 0;  // unit mask
  uint64_t period = 0;     // counts between two samples
  // In which modes samples are wanted.
  bool user = true;
  bool kernel = true;
  bool hypervisor = true;
};

// Makes libpfm4 ready; may be called again.
absl::Status StartLibpfm();

// "; did you mean NAME?", of the events of the processor that `name` is of, or of this machine's;
// nothing when none is near.
std::string SuggestEvent(std::string_view name);

// xenoprof's counters are 32 bits wide on some models and take only the lower 31 bits of a period.
inline constexpr uint64_t kMaxPeriod = (uint64_t{1} << 31) - 1;
// Below this a machine does little but take samples.
inline constexpr uint64_t kMinPeriod = 500;

// As xenoprof takes it, on a processor that it calls `cpu_type` ("x86-64/family15h"; empty: not
// known yet) whose clock has `cpu_hz`. The name is "cycles", libpfm4's event with its unit masks
// ("amd64_fam15h_interlagos::data_cache_misses:dc_miss_streaming_store"), of this machine's
// processor where it has no "MODEL::", or a raw code.
// Errors (InvalidArgument, NotFound): what is wrong with it, and how to list the names.
absl::StatusOr<PmuEvent> ResolvePmuEvent(const EventSpec& spec, std::string_view cpu_type,
                                         uint64_t cpu_hz);

// The unhalted-cycles event of a CPU as xenoprof names it ("x86-64/family15h",
// "i386/arch_perfmon"), with a period that gives 1000 samples a second on a busy CPU of `cpu_hz`.
PmuEvent DefaultEvent(std::string_view xenoprof_cpu_type, uint64_t cpu_hz);

// Whether a name or a description contains the word, in any case.
bool ContainsWord(std::string_view name, std::string_view text, std::string_view word);

struct EventDescription {
  std::string name;  // as ParseEventSpec takes it, without the period
  std::string text;
  bool xenoprof = false;  // can count it
};

// The events of the processors' PMUs that libpfm4 finds on this machine, whose name or description
// contains `word` in any case. On a processor that it does not know: those of all processors, by
// their full names.
absl::StatusOr<std::vector<EventDescription>> ListEvents(std::string_view word);

}  // namespace xenoscope::sampler
