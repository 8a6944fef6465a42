// Identifies the events of a recording, and chooses among them. An event is what its name, the
// modes in which it was counted and its source say: dom0's `cycles` is not a guest's.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "recording/info.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// The numbers of events that are shown together, in ascending order: one event, or the events of
// one name and modes of several agents, whose samples are of different domains.
using EventGroup = std::vector<uint16_t>;

// Returns the events of the recording, each with its source. Before format 1.8 the samples show the
// source; they are read only if names alone are ambiguous. Errors: InvalidArgument for more
// events than the format allows; those of Recording::OpenSamples.
absl::StatusOr<std::vector<recording::EventInfo>> ReadEvents(const recording::Recording& recording);

// Returns the events that `text` selects: NAME[:MODES][@SOURCE][#N]. MODES are letters of u (user),
// k (kernel) and h (hypervisor), as in `record -e`. SOURCE is SourceInfo::name, or `agent` for all
// agents. N is the number, from 1, among events that are otherwise the same. Errors: NotFound;
// InvalidArgument when the text is ambiguous. Both name the texts that there are.
absl::StatusOr<EventGroup> FindEvents(std::span<const recording::EventInfo> events,
                                      std::string_view text);

// Returns the events that are shown together with that of this number.
EventGroup GroupOf(std::span<const recording::EventInfo> events, uint16_t event);

// Returns the texts that select the events of none of these groups, sorted.
std::set<std::string> OtherEvents(std::span<const recording::EventInfo> events,
                                  std::span<const EventGroup> groups);

// Returns the shortest text that selects the group, with the modes if they are not all:
// "cycles", "cycles:k", "cycles@perf".
std::string EventSpelling(std::span<const recording::EventInfo> events, const EventGroup& group);

}  // namespace xenoscope::profile
