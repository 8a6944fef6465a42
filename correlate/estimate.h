// Estimates shares and cycles from counts of samples, with their uncertainty. docs/method.md,
// sections 4 and 5, has the formulas and their sources.
#pragma once

#include <cstdint>

namespace xenoscope::correlate {

// A 95 % confidence interval of a share, within [0, 1].
struct Interval {
  double low = 0;
  double high = 1;
};

// The 97.5 % point of the normal distribution: two-sided 95 %.
inline constexpr double kNormal95 = 1.959963984540054;

// The score interval of a share seen in `n` independent samples (Wilson 1927; method.md §5.1). `n`
// may be an effective number. [0, 1] when n is 0.
[[nodiscard]] Interval Wilson(double share, double n);

// The sums of one row in one stratum that give the variance of its share. Samples come in clusters
// c, and samples of one cluster are not independent of each other: x_c of its n_c samples are of
// the row. A sample with several possible places counts by its weights, which carry its influence
// on the estimate (em_refinement.h).
struct ClusterSums {
  double x = 0;   // sum of x_c
  double xx = 0;  // sum of x_c^2
  double xn = 0;  // sum of x_c n_c
};

struct ClusterTotals {
  double n = 0;           // sum of n_c: the samples of the stratum
  double nn = 0;          // sum of n_c^2
  uint64_t clusters = 0;  // the number of clusters with at least one sample
};

// Returns the variance of the row's share x / n: by linearisation over clusters, never less than
// that of independent samples (method.md §5.2). 0 when the stratum has no samples.
[[nodiscard]] double ShareVariance(const ClusterSums& row, const ClusterTotals& stratum);

// Returns the variance of a share of independent samples: p(1 - p)/n, or that of Agresti and
// Coull's share where the samples are few and alike (method.md §5.2). 0 when the stratum has no
// samples.
[[nodiscard]] double IndependentVariance(const ClusterSums& row, const ClusterTotals& stratum);

// A total over strata whose sizes are known exactly (traced cycles) and whose shares are estimated
// (method.md §4).
class PostStratified {
 public:
  // Adds a stratum in which the row has `share` of `size`.
  void Add(double size, double share, double variance) {
    total_ += size * share;
    variance_ += size * size * variance;
  }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] double variance() const { return variance_; }

 private:
  double total_ = 0;
  double variance_ = 0;
};

// Returns the interval of a share with this variance: Wilson's, with the number of independent
// samples that would have the variance, or `samples` if the share is 0 or 1. A point if the
// variance is 0, which means that the share is known exactly (method.md §5.3).
[[nodiscard]] Interval IntervalOf(double share, double variance, double samples);

}  // namespace xenoscope::correlate
