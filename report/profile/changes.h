// What happened to domains while they were recorded, for people.
#pragma once

#include <string>
#include <vector>

#include "recording/info.h"

namespace xenoscope::report {

// A sentence a domain that came, went or changed: "web (d3): paused at 4.1 s, unpaused at 5.0 s".
// Seconds are since sampling started. Of a domain that changed more often than a line has room for,
// the first changes and the number of the others.
std::vector<std::string> ChangeLines(const recording::RecordingInfo& info);

}  // namespace xenoscope::report
