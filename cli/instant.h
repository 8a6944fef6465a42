// Points in time as users write them.
#pragma once

#include <string>

#include "base/tsc.h"

namespace xenoscope::cli {

// A point in time: "12.5" is in seconds after the beginning, "@123456" is a TSC.
struct Instant {
  bool is_tsc = false;
  Tsc tsc;
  double seconds = 0;

  // Returns its TSC when the beginning is at `zero`; a TSC later than any record when the time is
  // too late for one.
  Tsc After(Tsc zero, Clock clock) const;
};

// Parses `text`. Throws a usage error that names the option.
Instant ParseInstant(const std::string& option, const std::string& text);

}  // namespace xenoscope::cli
