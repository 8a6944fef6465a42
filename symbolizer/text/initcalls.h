// Reads which initcalls a Linux kernel has, and at which level it calls each.
#pragma once

#include <string_view>
#include <vector>

#include "base/initcalls.h"

namespace xenoscope::symbolizer {

// Returns the initcalls by their addresses, ascending, from the text of /proc/kallsyms or of a
// System.map. The kernel has an entry for each, whose symbol is __initcall__kmod_MODULE__N_LINE_
// and the function and the number of the level (Linux 5.10 and later; before, __initcall_ and
// these). Empty: the text has no such symbols, or none of their functions. O(n log n).
[[nodiscard]] std::vector<Initcall> ReadInitcalls(std::string_view kallsyms);

}  // namespace xenoscope::symbolizer
