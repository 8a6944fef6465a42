// An event as a user requests it: -e NAME[:MODES][:PERIOD|@HZ], or several of them. Each source
// finds out how to program a counter for it (pmu_events.h, perf_events.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  // The number of the group of events that are counted together, as they are compared; none: alone.
  std::optional<uint32_t> group{};
};

// Parses a request. MODES are letters of u (user), k (kernel) and h (hypervisor). Errors
// (InvalidArgument): what is wrong with it.
absl::StatusOr<EventSpec> ParseEventSpec(std::string_view text);

// The text of one event among several.
struct EventText {
  std::string text;
  std::optional<uint32_t> group{};  // EventSpec::group, from 0
};

// Divides texts that have several events each, as perf does: "a,b", and "{a,b}" for a group. What
// follows the brace belongs to each event of the group: "{a,b}:u" is "{a:u,b:u}". Errors
// (InvalidArgument): braces that do not match, an event without a text.
absl::StatusOr<std::vector<EventText>> SplitEventTexts(std::span<const std::string> texts);

// Parses texts as SplitEventTexts divides them. Errors: those of both functions.
absl::StatusOr<std::vector<EventSpec>> ParseEventSpecs(std::span<const std::string> texts);

// Returns the code of a raw event, "rUUEE": hexadecimal unit mask and event select, as perf's.
std::optional<uint32_t> RawCode(std::string_view name);

}  // namespace xenoscope::sampler
