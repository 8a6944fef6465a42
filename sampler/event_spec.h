// An event as a user requests it: -e NAME[:MODES][:PERIOD|@HZ]. Each source finds out how to
// program a counter for it (pmu_events.h, perf_events.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// A requested event.
struct EventSpec {
  std::string name;  // "cycles", libpfm4's "EVENT:UNITMASK" or "PMU::EVENT", or a raw code "rUUEE"
  // The modes in which it is counted; all when none was named.
  bool user = true;
  bool kernel = true;
  bool hypervisor = true;
  std::optional<uint64_t> period;  // counts between two samples
  std::optional<uint64_t> hz;      // samples a second, instead of a period
};

// Parses a request. MODES are letters of u (user), k (kernel) and h (hypervisor). Errors
// (InvalidArgument): what is wrong with it.
absl::StatusOr<EventSpec> ParseEventSpec(std::string_view text);

// Returns the code of a raw event, "rUUEE": hexadecimal unit mask and event select, as perf's.
std::optional<uint32_t> RawCode(std::string_view name);

}  // namespace xenoscope::sampler
