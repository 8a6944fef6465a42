// Corrects p-values for the number of comparisons.
#pragma once

#include <vector>

namespace xenoscope::correlate {

// Both return the corrected p-values in the order given, each in [0, 1]; O(n log n); method.md
// §5.4.
//
// Keeps the probability of any false alarm below the level (Holm 1979, step down).
[[nodiscard]] std::vector<double> Holm(const std::vector<double>& p_values);
// Keeps the mean part of false alarms among the alarms below the level (Benjamini and Hochberg
// 1995, step up): for lists so long that Holm's procedure would find nothing.
[[nodiscard]] std::vector<double> BenjaminiHochberg(const std::vector<double>& p_values);

}  // namespace xenoscope::correlate
