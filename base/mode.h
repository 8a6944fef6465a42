// Where a processor was executing: an address, and in user mode, in a guest's kernel, or in Xen.
#pragma once

#include <cstdint>

namespace xenoscope {

using Address = uint64_t;

// The numbers are those of a xenoprof sample (xen/include/public/xenoprof.h, event_log.mode).
enum class Mode : uint8_t { kUser = 0, kKernel = 1, kXen = 2 };

[[nodiscard]] constexpr const char* ToString(Mode mode) {
  switch (mode) {
    case Mode::kUser:
      return "user";
    case Mode::kKernel:
      return "kernel";
    case Mode::kXen:
      return "xen";
  }
  return "?";
}

}  // namespace xenoscope
