#include "cli/time_of_day.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/options.h"

namespace xenoscope::cli {
namespace {

constexpr std::array kFormats = {"%Y-%m-%dT%H:%M:%E*S%Ez", "%Y-%m-%dT%H:%M:%E*S",
                                 "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H:%M", "%Y-%m-%d"};

// Parses "7d", or what absl takes: "90m", "1h30m". Returns whether it is a length of time.
bool ParseAge(const std::string& text, absl::Duration& age) {
  if (!text.ends_with('d')) return absl::ParseDuration(text, &age);
  const bool parsed = absl::ParseDuration(text.substr(0, text.size() - 1) + "h", &age);
  age *= 24;
  return parsed;
}

std::optional<absl::Time> ParseTime(const std::string& text) {
  absl::Duration age;
  if (ParseAge(text, age)) return absl::Now() - age;
  for (const char* const format : kFormats) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &error)) return time;
  }
  return std::nullopt;
}

}  // namespace

int64_t ParseTimeOfDay(const std::string& option, const std::string& text) {
  const std::optional<absl::Time> time = ParseTime(text);
  // Nanoseconds in 64 bits end in the year 2262.
  const absl::Time end = absl::FromCivil(absl::CivilYear(2200), absl::UTCTimeZone());
  if (time && *time >= absl::UnixEpoch() && *time < end) return absl::ToUnixNanos(*time);
  ThrowUsageError(option, fmt::format("'{}' is not a time; write {}", text, kTimeOfDayHelp));
}

int64_t ParseLength(const std::string& option, const std::string& text) {
  absl::Duration length;
  if (ParseAge(text, length) && length >= absl::Seconds(1) && length <= absl::Hours(24 * 366)) {
    return absl::ToInt64Nanoseconds(length);
  }
  ThrowUsageError(option, fmt::format("'{}' is not a length of time from 1s to 366d, such as 10m, "
                                      "1h or 7d",
                                      text));
}

std::string TimeOfDayText(int64_t utc_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixNanos(utc_ns), absl::UTCTimeZone());
}

}  // namespace xenoscope::cli
