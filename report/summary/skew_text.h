// Describes clocks that differ, in words.
#pragma once

#include <string>
#include <vector>

#include "base/tsc.h"
#include "correlate/clocks.h"

namespace xenoscope::report {

// Returns indented lines, each with its end. They give the difference of a clock from another, the
// byte of the file from which it is certain, and what the user can do.
std::string SkewText(const correlate::ClockSkew& skew, Clock clock);

// Returns a warning that such clocks make a command's output doubtful. `skews` is not empty. The
// last line has no end.
std::string SkewNote(const std::vector<correlate::ClockSkew>& skews, Clock clock);

}  // namespace xenoscope::report
