// Estimates as whole numbers, for formats that have no others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace xenoscope::report {

// Rounds the numbers of a list so that their sum is the rounded sum: what one loses by rounding the
// next one gets. None is less than 0: an estimate that is (docs/method.md, section 5.2) is taken
// from those behind it.
class CumulativeRounder {
 public:
  int64_t Next(double value) {
    sum_ += value;
    const int64_t due = std::llround(sum_) - given_;
    given_ += std::max<int64_t>(due, 0);
    return std::max<int64_t>(due, 0);
  }

 private:
  double sum_ = 0;
  int64_t given_ = 0;
};

}  // namespace xenoscope::report
