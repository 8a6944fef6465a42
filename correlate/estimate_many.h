// Many comparisons at once: p-values corrected so that the chance of even one false alarm stays
// below the level.
#pragma once

#include <vector>

namespace xenoscope::correlate {

// Holm's step-down adjustment (Holm 1979; method.md §5.4): the corrected p-values in the order
// given, each in [0, 1]. O(n log n).
std::vector<double> Holm(const std::vector<double>& p_values);

}  // namespace xenoscope::correlate
