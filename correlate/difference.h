// Compares two estimates, of one thing before and after or of two things: whether they differ, and
// by how much (docs/method.md, section 5.5).
#pragma once

#include <span>
#include <vector>

#include "correlate/estimate.h"

namespace xenoscope::correlate {

struct Estimated {
  double value = 0;
  double variance = 0;  // 0: known exactly
};

// Two estimates from independent samples.
struct EstimatePair {
  Estimated before;
  Estimated after;
};

struct Difference {
  double value = 0;  // after - before
  double low = 0;    // the lower end of the 95 % interval
  double high = 0;   // the upper end
  // The probability of a difference that is as large by chance, corrected for the number of pairs.
  double p = 1;
};

// Returns the difference of each pair. p-values are corrected by Holm's procedure, or, for more
// than kMaxHolmTests pairs, by that of Benjamini and Hochberg. O(n log n).
inline constexpr size_t kMaxHolmTests = 50;
[[nodiscard]] std::vector<Difference> Compare(std::span<const EstimatePair> pairs);

// Returns for each value the probability that its estimate is as large by chance where the true
// value is at most `level`: one-sided, so that values far below the level do not make alarms of
// others likelier. Corrected as in Compare. O(n log n).
[[nodiscard]] std::vector<double> ChanceOfAbove(std::span<const Estimated> values, double level);

// Returns the estimate of a share of which there was none among `samples` samples.
[[nodiscard]] Estimated UnseenShare(double samples);

}  // namespace xenoscope::correlate
