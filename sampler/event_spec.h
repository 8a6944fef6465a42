// An event as a user asks for it: -e NAME[:MODES][:PERIOD|@HZ]. What a counter must be programmed
// with for it is each source's own business (pmu_events.h, perf_events.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

struct EventSpec {
  std::string name;  // "cycles", libpfm4's "EVENT:UNITMASK" or "PMU::EVENT", a raw code "rUUEE"
  // Which modes it is counted in; all when none was named.
  bool user = true;
  bool kernel = true;
  bool hypervisor = true;
  std::optional<uint64_t> period;  // counts between two samples
  std::optional<uint64_t> hz;      // samples a second instead
};

// MODES are letters of u (user), k (kernel) and h (hypervisor). Errors (InvalidArgument): what is
// wrong with it.
absl::StatusOr<EventSpec> ParseEventSpec(std::string_view text);

// The code of a raw event, "rUUEE": hexadecimal unit mask and event select, as perf's.
std::optional<uint32_t> RawCode(std::string_view name);

}  // namespace xenoscope::sampler
