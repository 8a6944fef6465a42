#include "correlate/difference.h"

#include <cmath>
#include <cstddef>

#include "correlate/multiple_comparisons.h"

namespace xenoscope::correlate {

std::vector<Difference> Compare(std::span<const EstimatePair> pairs) {
  std::vector<Difference> differences;
  std::vector<double> p_values;
  for (const EstimatePair& pair : pairs) {
    Difference& difference = differences.emplace_back();
    difference.value = pair.after.value - pair.before.value;
    const double deviation = std::sqrt(pair.before.variance + pair.after.variance);
    difference.low = difference.value - kNormal95 * deviation;
    difference.high = difference.value + kNormal95 * deviation;
    // The two-sided p of the normal distribution. Exact values differ or do not.
    const double z = deviation > 0           ? std::abs(difference.value) / deviation
                     : difference.value != 0 ? HUGE_VAL
                                             : 0;
    p_values.push_back(std::erfc(z / std::sqrt(2)));
  }
  const std::vector<double> corrected =
      pairs.size() > kMaxHolmTests ? BenjaminiHochberg(p_values) : Holm(p_values);
  for (size_t i = 0; i < differences.size(); ++i) differences[i].p = corrected[i];
  return differences;
}

Estimated UnseenShare(double samples) {
  const double zz = kNormal95 * kNormal95;
  const double shrunk = zz / 2 / (samples + zz);
  return {0, shrunk * (1 - shrunk) / (samples + zz)};
}

}  // namespace xenoscope::correlate
