#include "correlate/change_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>

namespace xenoscope::correlate {
namespace {

// Permutations end when so many have a change as large as the values themselves (Besag and
// Clifford 1991).
constexpr uint64_t kMostExceeding = 20;
// Permutations beyond 1 / level, so that p can be below the level by more than a hair.
constexpr double kPermutationsPerLevel = 10;
// Sums of the same values in another order differ by rounding.
constexpr double kRounding = 1 - 1e-9;

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Split {
  size_t at = 0;
  double size = 0;
};

// Returns the split of `values`, whose mean is given, with the largest difference of means, in
// units in which random values differ equally at every split.
Split LargestSplit(std::span<const double> values, double mean) {
  const auto all = static_cast<double>(values.size());
  Split largest;
  double deviation = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    deviation += values[i - 1] - mean;
    const auto left = static_cast<double>(i);
    const double size = std::abs(deviation) / std::sqrt(left * (all - left));
    if (size > largest.size) largest = {i, size};
  }
  return largest;
}

// Returns the part of the permutations of the values whose largest split is not smaller.
double PermutationTest(std::span<const double> values, double mean, double size, double level,
                       std::mt19937_64& random) {
  std::vector<double> order(values.begin(), values.end());
  const auto permutations = static_cast<uint64_t>(std::ceil(kPermutationsPerLevel / level));
  uint64_t exceeding = 0;
  for (uint64_t done = 1; done <= permutations; ++done) {
    std::ranges::shuffle(order, random);
    if (LargestSplit(order, mean).size >= size * kRounding) ++exceeding;
    if (exceeding == kMostExceeding) {
      return static_cast<double>(exceeding) / static_cast<double>(done);
    }
  }
  return static_cast<double>(exceeding + 1) / static_cast<double>(permutations + 1);
}

}  // namespace

std::vector<ChangePoint> FindChangePoints(std::span<const double> values, double level) {
  std::vector<ChangePoint> changes;
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same result each time
  // Stretches of values in which a change is still to be looked for.
  struct Stretch {
    size_t begin;
    size_t end;
  };
  std::vector<Stretch> open = {{0, values.size()}};
  while (!open.empty()) {
    const Stretch stretch = open.back();
    open.pop_back();
    if (stretch.end - stretch.begin < 2) continue;
    const std::span<const double> part = values.subspan(stretch.begin, stretch.end - stretch.begin);
    const double mean = Mean(part);
    const Split split = LargestSplit(part, mean);
    if (split.size == 0) continue;
    const double p = PermutationTest(part, mean, split.size, level, random);
    if (p > level) continue;
    const size_t at = stretch.begin + split.at;
    changes.push_back({.at = at, .before = 0, .after = 0, .p = p});
    open.push_back({stretch.begin, at});
    open.push_back({at, stretch.end});
  }
  std::ranges::sort(changes, {}, &ChangePoint::at);
  for (size_t i = 0; i < changes.size(); ++i) {
    const size_t begin = i == 0 ? 0 : changes[i - 1].at;
    const size_t end = i + 1 == changes.size() ? values.size() : changes[i + 1].at;
    changes[i].before = Mean(values.subspan(begin, changes[i].at - begin));
    changes[i].after = Mean(values.subspan(changes[i].at, end - changes[i].at));
  }
  return changes;
}

}  // namespace xenoscope::correlate
