// Clocks that differ, in words.
#pragma once

#include <string>
#include <vector>

#include "base/tsc.h"
#include "correlate/clocks.h"

namespace xenoscope::report {

// How far a clock is from another, since which byte that is certain, and what the user can do:
// indented lines, each with its end.
std::string SkewText(const correlate::ClockSkew& skew, Clock clock);

// A warning that such clocks (at least one) make what a command prints doubtful; no line end last.
std::string SkewNote(const std::vector<correlate::ClockSkew>& skews, Clock clock);

}  // namespace xenoscope::report
