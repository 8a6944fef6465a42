// Points in time as users write them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/info.h"

namespace xenoscope::cli {

// What ParseInstant takes, for the help of options.
inline constexpr char kInstantHelp[] =
    "seconds after the beginning as in dump, @TSC, or a time of day: 14:03:07.5 (local time), "
    "14:03:07.5Z, 2026-03-01T14:03:07";

// What times are counted from.
struct TimeScale {
  Tsc zero;  // of seconds: the first record
  Clock clock;
  // Where the time of day comes from; null for a bare trace. It must outlive this.
  const recording::RecordingInfo* info = nullptr;
};

// A point in time: "12.5" is in seconds after the beginning, "@123456" is a TSC, "14:03:07" is the
// time of day.
struct Instant {
  std::optional<Tsc> tsc;
  double seconds = 0;
  std::string time_of_day;  // empty: not one

  // Returns its TSC; a TSC later than any record when the time is too late for one. A time without
  // a date is the one that is nearest to the recording. Errors: FailedPrecondition where the
  // recording does not know the time of day.
  [[nodiscard]] absl::StatusOr<Tsc> On(const TimeScale& scale) const;
};

// Returns the range [from, to) within `all`, which is not set beyond what it does not choose.
// Errors: those of Instant::On; InvalidArgument when `to` is not later than `from`.
absl::StatusOr<TscRange> RangeOf(const std::optional<Instant>& from,
                                 const std::optional<Instant>& to, const TimeScale& scale,
                                 TscRange all);

// Return the errors of ranges that end before `what` ("trace") begins, and that begin after it has
// ended, so many seconds after its beginning.
absl::Status ToSelectsNothing(std::string_view what);
absl::Status FromSelectsNothing(std::string_view what, double seconds);

// Parses `text`. Throws a usage error that names the option.
Instant ParseInstant(const std::string& option, const std::string& text);

}  // namespace xenoscope::cli
