#include "correlate/influence_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"

namespace xenoscope::correlate {
namespace {

// The prior of samples' places: a Dirichlet distribution around what the lengths say, with the
// concentration 1, as if one sample had been seen everywhere. Its covariance
// in n samples has the inverse (1 + 1) / n^2 diag(1 / p).
constexpr double kConcentration = 1;

// Replaces a symmetric positive definite square by its lower Cholesky factor. O(n^3).
void Factor(std::vector<double>& square, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = j; i < n; ++i) {
      double sum = square[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= square[i * n + k] * square[j * n + k];
      if (i == j) {
        square[j * n + j] = std::sqrt(std::max(sum, std::numeric_limits<double>::min()));
      } else {
        square[i * n + j] = sum / square[j * n + j];
      }
    }
  }
}

// Solves L L' x = b; `x` is b before and the solution after. O(n^2).
void Solve(const std::vector<double>& factor, std::span<double> x) {
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= factor[i * n + k] * x[k];
    x[i] /= factor[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) x[i] -= factor[k * n + i] * x[k];
    x[i] /= factor[i * n + i];
  }
}

}  // namespace

double InfluenceWeights::Sign(uint64_t group, size_t part) const {
  return (SplitMix64(seed_ + (group << 8 | part / 64)) >> part % 64 & 1) != 0 ? 1 : -1;
}

void InfluenceWeights::Begin(size_t parts, uint32_t seed) {
  seed_ = SplitMix64(seed);
  lengths_.assign(parts, 0);
  expected_.assign(parts, 0);
  signs_.assign(parts, 0);
  crossed_.assign(parts, 0);
  information_.assign(parts * parts, 0);
  samples_ = 0;
  squares_ = 0;
  added_ = 0;
  weighed_ = 0;
  open_ = false;
}

void InfluenceWeights::Add(std::span<const double> lengths, std::span<const double> expected,
                           uint64_t count) {
  const size_t n = expected_.size();
  const auto times = static_cast<double>(count);
  const double root = std::sqrt(times);
  size_t places = 0;
  for (size_t i = 0; i < n; ++i) {
    // The root of the count is about what so many random signs sum to. The samples share one sign.
    const double sign = Sign(added_, i) * root;
    signs_[i] += sign;
    crossed_[i] += sign * times;
    if (expected[i] == 0) continue;
    ++places;
    lengths_[i] += times * lengths[i];
    expected_[i] += times * expected[i];
    const double weight = times * expected[i];
    for (size_t j = 0; j < n; ++j) information_[i * n + j] += weight * expected[j];
  }
  open_ = open_ || places > 1;
  samples_ += count;
  squares_ += times * times;
  ++added_;
}

void InfluenceWeights::Conclude() {
  if (!open_) return;
  const size_t n = expected_.size();
  const auto samples = static_cast<double>(samples_);
  for (double& sum : signs_) sum /= samples;
  for (double& sum : crossed_) sum /= samples;
  double spread = 0;
  for (size_t i = 0; i < n; ++i) {
    if (expected_[i] > 0) spread += expected_[i] * expected_[i] / lengths_[i] / samples;
  }
  for (size_t i = 0; i < n; ++i) {
    if (expected_[i] == 0) {  // no sample was there: it has no influence, and suffers none
      information_[i * n + i] = 1;
      continue;
    }
    for (size_t j = 0; j < n; ++j) {
      if (expected_[j] == 0) continue;
      const double own = i == j ? 1 / lengths_[i] : 0;
      const double shift =
          (expected_[i] / lengths_[i] + expected_[j] / lengths_[j] - spread) / samples;
      double& information = information_[i * n + j];
      information /= expected_[i] * expected_[j];
      information += (1 + kConcentration) / samples * (own - shift);
    }
  }
  Factor(information_, n);
  spread_.assign(n, 0);
  unknown_.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    // The mean, by sample, of the squared sums of samples that came together.
    const double mean = signs_[i];
    const double others = 1 - 2 * mean * crossed_[i] + mean * mean * squares_ / samples;
    if (others <= 0 || expected_[i] == 0) continue;
    spread_[i] = std::sqrt((1 + kConcentration) / lengths_[i]) / samples / std::sqrt(others);
  }
}

void InfluenceWeights::Weigh(std::span<double> weights, uint64_t count) {
  const uint64_t group = weighed_++;
  if (!open_) return;
  const size_t n = weights.size();
  const auto samples = static_cast<double>(samples_);
  const double root = std::sqrt(static_cast<double>(count));
  // The variance that no sample shows is spread over all, with random signs that sum to 0.
  double mean = 0;
  for (size_t i = 0; i < n; ++i) {
    if (spread_[i] == 0) continue;
    unknown_[i] = spread_[i] * (Sign(group, i) / root - signs_[i]);
    mean += unknown_[i] * expected_[i] / samples;
  }
  for (size_t i = 0; i < n; ++i) {
    if (expected_[i] > 0) weights[i] = weights[i] / expected_[i] + unknown_[i] - mean;
  }
  Solve(information_, weights);
}

}  // namespace xenoscope::correlate
