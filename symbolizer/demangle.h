// C++ names as people write them.
#pragma once

#include <string>
#include <string_view>

namespace xenoscope::symbolizer {

// The name without its mangling; names that are not mangled, damaged, or longer than a hostile
// file's should be allowed to be, as they are.
std::string Demangled(std::string_view name);

}  // namespace xenoscope::symbolizer
