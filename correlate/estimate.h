// From counts of samples to shares and cycles, with how sure they are. docs/method.md, sections 4
// and 5, has the formulas and where they come from.
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
Interval Wilson(double share, double n);

// What must be known of one row in one stratum for the variance of its share. Samples come in
// clusters c, and samples of one cluster are not independent of each other: x_c of its n_c samples
// are of the row. A sample whose place is open counts by its weights, which carry its influence on
// the estimate (em_refinement.h).
struct ClusterSums {
  double x = 0;   // sum of x_c
  double xx = 0;  // sum of x_c^2
  double xn = 0;  // sum of x_c n_c
};

struct ClusterTotals {
  double n = 0;           // sum of n_c: the samples of the stratum
  double nn = 0;          // sum of n_c^2
  uint64_t clusters = 0;  // with at least one sample
};

// The variance of the row's share x / n: by linearisation over clusters, never less than that of
// independent samples (method.md §5.2). 0 when the stratum has no samples.
double ShareVariance(const ClusterSums& row, const ClusterTotals& stratum);

// The variance of a share of independent samples, p(1 - p)/n, or where they are few and alike what
// Agresti and Coull's share says (method.md §5.2). 0 when the stratum has no samples.
double IndependentVariance(const ClusterSums& row, const ClusterTotals& stratum);

// A total over strata: sizes known exactly (traced cycles), shares estimated (method.md §4).
class PostStratified {
 public:
  // One stratum in which the row has `share` of `size`.
  void Add(double size, double share, double variance) {
    total_ += size * share;
    variance_ += size * size * variance;
  }
  double total() const { return total_; }
  double variance() const { return variance_; }

 private:
  double total_ = 0;
  double variance_ = 0;
};

// The interval of a share whose variance is known: Wilson's with the number of independent samples
// that would have this variance, or `samples` where the share is 0 or 1; a point when the variance
// is 0, which says that the share is known exactly (method.md §5.3).
Interval IntervalOf(double share, double variance, double samples);

}  // namespace xenoscope::correlate
