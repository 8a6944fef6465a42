#include "cli/instant.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "cli/options.h"

namespace xenoscope::cli {

Tsc Instant::After(Tsc zero, Clock clock) const {
  if (is_tsc) return tsc;
  const double cycles = seconds * static_cast<double>(clock.hz);
  const Cycles most = std::numeric_limits<Cycles>::max() - zero.value;
  constexpr double kMaxCycles = 9e18;
  if (cycles >= kMaxCycles) return zero + most;
  return zero + std::min(static_cast<Cycles>(std::llround(cycles)), most);
}

Instant ParseInstant(const std::string& option, const std::string& text) {
  Instant instant;
  std::string_view rest = text;
  instant.is_tsc = rest.starts_with('@');
  if (instant.is_tsc) rest.remove_prefix(1);
  const char* end = rest.data() + rest.size();
  const auto [stopped, error] = instant.is_tsc
                                    ? std::from_chars(rest.data(), end, instant.tsc.value)
                                    : std::from_chars(rest.data(), end, instant.seconds);
  const bool in_range = instant.seconds >= 0 && instant.seconds < 1e9;
  if (error != std::errc() || stopped != end || rest.empty() || !in_range) {
    ThrowUsageError(option, text + " is not a time (write seconds, 1.25, or a TSC, @123456789)");
  }
  return instant;
}

}  // namespace xenoscope::cli
