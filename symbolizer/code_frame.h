// What an address is: one level of inlining.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xenoscope::symbolizer {

// The texts live as long as the DebugInfo that they are of.
struct CodeFrame {
  std::string_view function;  // demangled
  // Where in it: the line of the address, or where the frame before this one was called.
  std::string_view file;
  uint32_t line = 0;  // 0: not known
};

// No compiler inlines as deeply.
inline constexpr size_t kMaxFrames = 256;

}  // namespace xenoscope::symbolizer
