#include "base/figure_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

namespace xenoscope {

std::string CountText(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string SecondsText(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 0.9995 || size == 0) return fmt::format("{:.3f} s", seconds);
  if (size >= 0.9995e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  if (size >= 0.9995e-6) return fmt::format("{:.3f} us", seconds * 1e6);
  return fmt::format("{:.0f} ns", seconds * 1e9);
}

std::string ShareText(double share) { return fmt::format("{:.2f}%", share * 100); }

}  // namespace xenoscope
