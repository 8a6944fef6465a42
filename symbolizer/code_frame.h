// A frame of an address: one level of inlining.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xenoscope::symbolizer {

// A frame. Its texts live as long as the DebugInfo that returned it.
struct CodeFrame {
  std::string_view function;  // demangled
  // The source line of the address, or the line that calls the frame before this one.
  std::string_view file;
  uint32_t line = 0;  // number of the line; 0: not known
};

// Limit of frames at one address; compilers do not inline as deeply.
inline constexpr size_t kMaxFrames = 256;

}  // namespace xenoscope::symbolizer
