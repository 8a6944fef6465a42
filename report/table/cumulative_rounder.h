// Rounds estimates to whole numbers, for formats that have no other numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace xenoscope::report {

// A rounder for the numbers of a list. The sum of its results is the rounded sum: what one number
// loses by rounding, the next number gets. No result is below 0: an estimate below 0
// (docs/method.md, section 5.2) is subtracted from the numbers after it.
class CumulativeRounder {
 public:
  // Returns the next whole number; at least 0.
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
