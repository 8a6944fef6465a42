// Folded stacks: "outermost;...;innermost WEIGHT", a line a stack, as flame graph programs read.
#pragma once

#include <string>
#include <vector>

#include "report/export/flame_lines.h"

namespace xenoscope::report {

std::string ToFolded(const std::vector<FlameLine>& lines);

}  // namespace xenoscope::report
