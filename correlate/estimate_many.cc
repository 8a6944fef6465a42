#include "correlate/estimate_many.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace xenoscope::correlate {

std::vector<double> Holm(const std::vector<double>& p_values) {
  const size_t n = p_values.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(n);
  double least = 0;  // a larger p-value never gets a smaller corrected one
  for (size_t rank = 0; rank < n; ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(n - rank);
    least = std::max(least, std::min(scaled, 1.0));
    adjusted[order[rank]] = least;
  }
  return adjusted;
}

}  // namespace xenoscope::correlate
