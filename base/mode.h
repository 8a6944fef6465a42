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

// A set of modes.
struct ModeSet {
  bool user = false;
  bool kernel = false;
  bool xen = false;
  constexpr bool operator==(const ModeSet&) const = default;

  [[nodiscard]] constexpr bool Contains(Mode mode) const {
    switch (mode) {
      case Mode::kUser:
        return user;
      case Mode::kKernel:
        return kernel;
      case Mode::kXen:
        return xen;
    }
    return false;
  }
};
inline constexpr ModeSet kAllModes{true, true, true};

}  // namespace xenoscope
