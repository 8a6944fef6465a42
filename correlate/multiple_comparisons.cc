#include "correlate/multiple_comparisons.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace xenoscope::correlate {

namespace {

// Returns the indices of the p-values, in the ascending order of these.
std::vector<size_t> Ascending(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  return order;
}

}  // namespace

std::vector<double> Holm(const std::vector<double>& p_values) {
  const size_t n = p_values.size();
  const std::vector<size_t> order = Ascending(p_values);
  std::vector<double> adjusted(n);
  double least = 0;  // a larger p-value never gets a smaller corrected one
  for (size_t rank = 0; rank < n; ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(n - rank);
    least = std::max(least, std::min(scaled, 1.0));
    adjusted[order[rank]] = least;
  }
  return adjusted;
}

std::vector<double> BenjaminiHochberg(const std::vector<double>& p_values) {
  const size_t n = p_values.size();
  const std::vector<size_t> order = Ascending(p_values);
  std::vector<double> adjusted(n);
  double most = 1;  // a smaller p-value never gets a larger corrected one
  for (size_t rank = n; rank-- > 0;) {
    const double scaled =
        p_values[order[rank]] * static_cast<double>(n) / static_cast<double>(rank + 1);
    most = std::min(most, scaled);
    adjusted[order[rank]] = most;
  }
  return adjusted;
}

}  // namespace xenoscope::correlate
