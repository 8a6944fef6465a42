// Finds where the level of a series of figures changes, against the usual variation of the series
// itself (docs/method.md, section 5.7).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace xenoscope::correlate {

struct ChangePoint {
  size_t at = 0;      // index of the first value of the new level
  double before = 0;  // mean from the change point before, or the beginning, to this one
  double after = 0;   // mean from this one to the next, or to the end
  double p = 1;       // probability of a change that is as large by chance, if there is none
};

// Returns the change points of the series in ascending order: those whose p is at most `level`, in
// (0, 1]. If the values come from one distribution, in any order, the probability that there is
// any is at most `level`. The same values always give the same result. O(n / level) for each
// change that is found, and about O(30 n) for a series without one.
[[nodiscard]] std::vector<ChangePoint> FindChangePoints(std::span<const double> values,
                                                        double level);

}  // namespace xenoscope::correlate
