// Whether two estimates differ, and by how much: of one thing before and after, or of two things
// (docs/method.md, section 5.5).
#pragma once

#include <span>
#include <vector>

#include "correlate/estimate.h"

namespace xenoscope::correlate {

struct Estimated {
  double value = 0;
  double variance = 0;  // 0: known exactly
};

// Two estimates from samples that have nothing to do with each other.
struct EstimatePair {
  Estimated before;
  Estimated after;
};

struct Difference {
  double value = 0;  // after - before
  double low = 0;    // its 95 % interval
  double high = 0;
  double p = 1;  // that they differ as much by chance, corrected for the number of pairs
};

// Of each pair. p-values are corrected by Holm's procedure, or, where there are more than
// kMaxHolmTests pairs, by Benjamini and Hochberg's. O(n log n).
inline constexpr size_t kMaxHolmTests = 50;
std::vector<Difference> Compare(std::span<const EstimatePair> pairs);

// What is known of a share that none of `samples` samples showed.
Estimated UnseenShare(double samples);

}  // namespace xenoscope::correlate
