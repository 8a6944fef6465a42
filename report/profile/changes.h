// The changes of domains during a recording, for people.
#pragma once

#include <string>
#include <vector>

#include "recording/info.h"

namespace xenoscope::report {

// One sentence for each domain that came, went or changed: "web (d3): paused at 4.1 s, unpaused at
// 5.0 s". Seconds are since sampling started. A domain with more changes than a line has room for
// has the first changes and the number of the others.
std::vector<std::string> ChangeLines(const recording::RecordingInfo& info);

}  // namespace xenoscope::report
