// Times of day as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xenoscope::cli {

// What ParseTimeOfDay takes, for the help of options.
inline constexpr char kTimeOfDayHelp[] =
    "2026-03-01T14:30:00Z, 2026-03-01 14:30, 2026-03-01 (local time), or how long ago: 90m, 24h, "
    "7d";

// Returns the time in nanoseconds of UTC since 1970. Throws a usage error that names the option.
int64_t ParseTimeOfDay(const std::string& option, const std::string& text);

// Returns the time in nanoseconds of UTC since 1970 that "14:03:07.5" or "2026-03-01T14:03:07"
// says, in local time unless it ends with a time zone: "14:03:07Z", "14:03+02:00". A time without a
// date is the one nearest to the range [begin_ns, end_ns) of such nanoseconds. Nothing if the text
// is no such time, or the year is not between 1970 and 2200.
std::optional<int64_t> NearestTimeOfDay(const std::string& text, int64_t begin_ns, int64_t end_ns);

// Returns a length of time in nanoseconds, more than 0: "10m", "1h", "7d". Throws a usage error,
// which ends with `other`: what else the option takes.
int64_t ParseLength(const std::string& option, const std::string& text,
                    std::string_view other = {});

// Returns "2026-03-01T14:30:00Z".
std::string TimeOfDayText(int64_t utc_ns);

}  // namespace xenoscope::cli
