// Describes what of a trace could not be read, in words.
#pragma once

#include <string>
#include <vector>

#include "trace/unread_counts.h"

namespace xenoscope::report {

// Returns a line, without its end, on damaged places and one on malformed records; none where there
// are none of them.
std::vector<std::string> UnreadNotes(const trace::UnreadCounts& unread);

}  // namespace xenoscope::report
