// Describes the TSCs of guests, in words and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/tsc.h"
#include "correlate/guest_clocks.h"

namespace xenoscope::report {

// Returns a heading and a line for each epoch of the largest kMostGuestClocks clocks; empty if
// there are none. `begin` is the trace's first record: times are seconds since then.
std::string GuestClockText(const std::vector<correlate::DomainClock>& clocks, Tsc begin,
                           Clock clock);
inline constexpr size_t kMostGuestClocks = 8;

// Returns {domain, numbers, outside, unknown, epochs [{begin, end, events, ranges [{least,
// most}]}]}; begin and end are host TSCs, and ranges are guest TSC - host TSC, all in cycles.
nlohmann::ordered_json JsonGuestClock(const correlate::DomainClock& clock);

}  // namespace xenoscope::report
