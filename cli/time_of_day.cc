#include "cli/time_of_day.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/options.h"

namespace xenoscope::cli {
namespace {

constexpr std::array kFormats = {
    "%Y-%m-%dT%H:%M:%E*S%Ez", "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%dT%H:%M%Ez", "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%E*S",    "%Y-%m-%d %H:%M",      "%Y-%m-%d"};

// Parses "7d", or what absl takes: "90m", "1h30m". Returns whether it is a length of time.
bool ParseAge(const std::string& text, absl::Duration& age) {
  if (!text.ends_with('d')) return absl::ParseDuration(text, &age);
  const bool parsed = absl::ParseDuration(text.substr(0, text.size() - 1) + "h", &age);
  age *= 24;
  return parsed;
}

// Returns a time that has a date. Those for which nanoseconds in 64 bits have no room are none.
std::optional<absl::Time> ParseDate(const std::string& text) {
  const absl::Time end = absl::FromCivil(absl::CivilYear(2200), absl::UTCTimeZone());
  for (const char* const format : kFormats) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &error)) continue;
    if (time >= absl::UnixEpoch() && time < end) return time;
  }
  return std::nullopt;
}

std::optional<absl::Time> ParseTime(const std::string& text) {
  absl::Duration age;
  if (!ParseAge(text, age)) return ParseDate(text);
  const absl::Time time = absl::Now() - age;
  return time >= absl::UnixEpoch() ? std::optional(time) : std::nullopt;
}

int64_t DistanceFrom(int64_t at, int64_t begin, int64_t end) {
  return std::max({begin - at, at - end, int64_t{0}});
}

}  // namespace

int64_t ParseTimeOfDay(const std::string& option, const std::string& text) {
  const std::optional<absl::Time> time = ParseTime(text);
  if (time) return absl::ToUnixNanos(*time);
  ThrowUsageError(option, fmt::format("'{}' is not a time; write {}", text, kTimeOfDayHelp));
}

std::optional<int64_t> NearestTimeOfDay(const std::string& text, int64_t begin_ns, int64_t end_ns) {
  if (const auto time = ParseDate(text)) return absl::ToUnixNanos(*time);
  const absl::CivilDay first =
      absl::ToCivilDay(absl::FromUnixNanos(begin_ns), absl::LocalTimeZone());
  const absl::CivilDay last = absl::ToCivilDay(absl::FromUnixNanos(end_ns), absl::LocalTimeZone());
  std::optional<int64_t> nearest;
  // A text with a time zone may mean the day before or after.
  for (absl::CivilDay day = first - 1; day <= last + 1; ++day) {
    const auto time = ParseDate(absl::FormatCivilTime(day) + "T" + text);
    if (!time) continue;
    const int64_t at = absl::ToUnixNanos(*time);
    if (!nearest || DistanceFrom(at, begin_ns, end_ns) < DistanceFrom(*nearest, begin_ns, end_ns)) {
      nearest = at;
    }
  }
  return nearest;
}

int64_t ParseLength(const std::string& option, const std::string& text, std::string_view other) {
  absl::Duration length;
  if (ParseAge(text, length) && length >= absl::Seconds(1) && length <= absl::Hours(24 * 366)) {
    return absl::ToInt64Nanoseconds(length);
  }
  ThrowUsageError(option, fmt::format("'{}' is not a length of time from 1s to 366d, such as 10m, "
                                      "1h or 7d{}",
                                      text, other));
}

std::string TimeOfDayText(int64_t utc_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixNanos(utc_ns), absl::UTCTimeZone());
}

}  // namespace xenoscope::cli
