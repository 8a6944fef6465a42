// Demangling of C++ names.
#pragma once

#include <string>
#include <string_view>

namespace xenoscope::symbolizer {

// Returns the name without its mangling. A name that is not mangled, damaged, or longer than a
// limit against hostile files is returned unchanged.
std::string Demangled(std::string_view name);

}  // namespace xenoscope::symbolizer
