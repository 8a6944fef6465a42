#include "correlate/ranks.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace xenoscope::correlate {
namespace {

// By j, from 0 to n: the probability that j of n instants, uniform in [0, 1), lie before u.
std::array<double, kMaxRanks + 1> NumberBefore(double u, size_t n) {
  std::array<double, kMaxRanks + 1> probability{};
  double choose = 1;
  for (size_t j = 0; j <= n; ++j) {
    probability[j] =
        choose * std::pow(u, static_cast<double>(j)) * std::pow(1 - u, static_cast<double>(n - j));
    choose = choose * static_cast<double>(n - j) / static_cast<double>(j + 1);
  }
  return probability;
}

// The instant of rank k (from 0) lies before u when more than k do: its distribution is
// Beta(k + 1, n - k) (David and Nagaraja, Order Statistics, 3rd ed. 2003, §2.1).
RankDensity Make(size_t n) {
  RankDensity density{};
  std::array<double, kMaxRanks> before{};  // by rank: the probability that it lies before the slot
  for (size_t slot = 0; slot < kRankSlots; ++slot) {
    const auto number =
        NumberBefore(static_cast<double>(slot + 1) / static_cast<double>(kRankSlots), n);
    double more = 0;
    for (size_t rank = n; rank-- > 0;) {
      more += number[rank + 1];
      more = std::max(more, before[rank]);  // true but for rounding
      density[slot][rank] = (more - before[rank]) * static_cast<double>(kRankSlots);
      before[rank] = more;
    }
  }
  return density;
}

}  // namespace

const RankDensity& DensityOf(size_t ranks) {
  static const auto all = [] {
    auto made = std::make_unique<std::array<RankDensity, kMaxRanks>>();
    for (size_t n = 1; n <= kMaxRanks; ++n) (*made)[n - 1] = Make(n);
    return made;
  }();
  return (*all)[ranks - 1];
}

}  // namespace xenoscope::correlate
