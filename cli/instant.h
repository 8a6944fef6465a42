// Points in time as users write them.
#pragma once

#include <string>

#include "base/tsc.h"

namespace xenoscope::cli {

// "12.5", seconds after the beginning, or "@123456", a TSC.
struct Instant {
  bool is_tsc = false;
  Tsc tsc;
  double seconds = 0;

  // Where the beginning is at `zero`; later than any record where it is too late for a TSC.
  Tsc After(Tsc zero, Clock clock) const;
};

// Throws a usage error, which names the option.
Instant ParseInstant(const std::string& option, const std::string& text);

}  // namespace xenoscope::cli
