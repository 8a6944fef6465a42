// From the profile of a recording to what the store keeps of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "correlate/row_key.h"
#include "profile/profile_results.h"
#include "store/slice.h"

namespace xenoscope::store {

// Returns the columns by which Gather needs sums (ProfileColumns::sums_by).
[[nodiscard]] std::vector<std::vector<correlate::Dimension>> GatheredColumns();

// Returns the sums of a profile that was made with GatheredColumns, and adds their keys to the
// dictionary. `label` returns how reports name the domain. Names are bounded. O(sums).
[[nodiscard]] SliceSums Gather(const profile::SampleSet& samples,
                               const profile::ProfileResults& results,
                               const std::function<std::string(DomainId)>& label,
                               Dictionary& dictionary);

}  // namespace xenoscope::store
