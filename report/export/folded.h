// Writes folded stacks, which flame graph programs read: one line for each stack,
// "outermost;...;innermost WEIGHT".
#pragma once

#include <string>

#include "report/export/flame_lines.h"

namespace xenoscope::report {

std::string ToFolded(const FlameGraph& graph);

}  // namespace xenoscope::report
