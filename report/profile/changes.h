// The changes of domains during a recording, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recording/info.h"

namespace xenoscope::report {

// Returns what happened, without the vCPU: "paused".
[[nodiscard]] std::string_view ChangeText(recording::DomainChange::Kind kind);

// Returns a sentence for each domain that was created, destroyed or changed: "web (d3): paused at
// 4.1 s, unpaused at 5.0 s". Seconds are since sampling started. If a line has no room for all
// changes, it has the first ones and the number of the others.
std::vector<std::string> ChangeLines(const recording::RecordingInfo& info);

}  // namespace xenoscope::report
