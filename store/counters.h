// What a report counts besides rows, as numbers with names that add up over slices.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "profile/profile_results.h"
#include "store/slice.h"

namespace xenoscope::store {

// The name of a counter of samples without a function begins with this; the reason follows.
inline constexpr std::string_view kUnresolvedCounter = "unresolved.";

// Returns the counters of a profile that are not 0. Names are bounded.
[[nodiscard]] std::vector<Counter> CountersOf(const profile::SampleSet& samples,
                                              const profile::ProfileResults& results);

// Adds a counter of CountersOf to what it was made of; counters that this version does not know
// are left out.
void AddCounter(const Counter& counter, profile::SampleSet& samples,
                profile::ProfileResults& results);

}  // namespace xenoscope::store
