#include "cli/instant.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "cli/options.h"
#include "cli/time_of_day.h"

namespace xenoscope::cli {
namespace {

// Returns the TSC that is so many cycles from `at`, or the nearest that there is.
Tsc Shifted(Tsc at, double cycles) {
  constexpr double kMaxCycles = 9e18;
  if (cycles < 0) {
    return Tsc{at.value - static_cast<Cycles>(std::min(-cycles, static_cast<double>(at.value)))};
  }
  const Cycles most = std::numeric_limits<Cycles>::max() - at.value;
  if (cycles >= kMaxCycles) return at + most;
  return at + std::min(static_cast<Cycles>(std::llround(cycles)), most);
}

absl::StatusOr<Tsc> AtTimeOfDay(const std::string& text, const TimeScale& scale) {
  if (scale.info == nullptr || !scale.info->wall_clock) {
    return PreconditionError(
        "{} is a time of day, which {} does not know: give seconds after its beginning", text,
        scale.info == nullptr ? "a bare trace" : "this recording (its format is before 1.11)");
  }
  const Clock& clock = scale.clock;
  const auto began = static_cast<int64_t>(scale.info->wall_clock->utc_ns);
  const Tsc started = scale.info->started;
  const Cycles length = scale.info->stopped > started ? scale.info->stopped - started : 0;
  const auto ended = began + static_cast<int64_t>(clock.Nanoseconds(length));
  const std::optional<int64_t> utc_ns = NearestTimeOfDay(text, began, ended);
  if (!utc_ns) return InvalidError("{} is not a time of day", text);
  constexpr double kNanosecondsOfSecond = 1e9;
  const double seconds = static_cast<double>(*utc_ns - began) / kNanosecondsOfSecond;
  return Shifted(started, seconds * static_cast<double>(clock.hz));
}

// Whether all of `text` is the number.
template <typename T>
bool ParseNumber(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end && !text.empty();
}

}  // namespace

absl::StatusOr<Tsc> Instant::On(const TimeScale& scale) const {
  if (tsc) return *tsc;
  if (!time_of_day.empty()) return AtTimeOfDay(time_of_day, scale);
  return Shifted(scale.zero, seconds * static_cast<double>(scale.clock.hz));
}

absl::StatusOr<TscRange> RangeOf(const std::optional<Instant>& from,
                                 const std::optional<Instant>& to, const TimeScale& scale,
                                 TscRange all) {
  TscRange range = all;
  if (from) {
    XENOSCOPE_ASSIGN_OR_RETURN(range.begin, from->On(scale));
  }
  if (to) {
    XENOSCOPE_ASSIGN_OR_RETURN(range.end, to->On(scale));
  }
  if (from && to && range.Empty()) {
    return InvalidError(
        "--to is not later than --from: nothing lies between them; choose a later --to");
  }
  return range;
}

absl::Status ToSelectsNothing(std::string_view what) {
  return InvalidError("--to selects nothing: the {} begins then or later", what);
}

absl::Status FromSelectsNothing(std::string_view what, double seconds) {
  return InvalidError("--from selects nothing: the {} has {:.6f} s", what, seconds);
}

Instant ParseInstant(const std::string& option, const std::string& text) {
  Instant instant;
  if (text.starts_with('@')) {
    Tsc tsc;
    if (ParseNumber(std::string_view(text).substr(1), tsc.value)) {
      instant.tsc = tsc;
      return instant;
    }
  } else if (ParseNumber(text, instant.seconds)) {
    if (instant.seconds >= 0 && instant.seconds < 1e9) return instant;
  } else if (NearestTimeOfDay(text, 0, 0)) {
    instant.time_of_day = text;
    return instant;
  }
  ThrowUsageError(option, text + " is not a time (write " + kInstantHelp + ")");
}

}  // namespace xenoscope::cli
