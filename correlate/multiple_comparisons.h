// Many comparisons at once: p-values corrected for their number.
#pragma once

#include <vector>

namespace xenoscope::correlate {

// Both return the corrected p-values in the order given, each in [0, 1]; O(n log n); method.md
// §5.4.
//
// The chance of even one false alarm stays below the level (Holm 1979, step down).
std::vector<double> Holm(const std::vector<double>& p_values);
// Of the alarms, the part that is false stays below the level on the average (Benjamini and
// Hochberg 1995, step up): for lists so long that nothing would pass the other.
std::vector<double> BenjaminiHochberg(const std::vector<double>& p_values);

}  // namespace xenoscope::correlate
