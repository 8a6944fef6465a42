// Instants of a trace, as a few ranges of time that hold them: where to look for something, rather
// than between all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/tsc.h"

namespace xenoscope::correlate {

class TimeSpans {
 public:
  // Adds an instant, in any order. O(1) near the last one that was added, else O(kMost).
  void Add(Tsc at) {
    if (IsNear(at, last_)) [[likely]] {
      last_.begin = std::min(last_.begin, at);
      last_.end = std::max(last_.end, at + 1);
      return;
    }
    if (!last_.Empty()) Keep(last_);
    last_ = {at, at + 1};
  }
  void Add(const TimeSpans& more) {
    for (const TscRange& span : more.Ranges()) {
      if (!last_.Empty()) Keep(last_);
      last_ = span;
    }
  }
  [[nodiscard]] bool empty() const { return last_.Empty(); }
  // Returns the ranges that hold all instants, ascending and more than kGap apart: at most kMost,
  // and one more.
  [[nodiscard]] std::vector<TscRange> Ranges() const {
    std::vector<TscRange> ranges = ranges_;
    if (!last_.Empty()) ranges.push_back(last_);
    Join(ranges);
    return ranges;
  }

  // Instants that are no further apart are in one range, in cycles (some 30 ms).
  static constexpr Cycles kGap = Cycles{1} << 26;
  static constexpr size_t kMost = 32;

 private:
  static bool IsNear(Tsc at, TscRange span) {
    return !span.Empty() && at + kGap >= span.begin && at <= span.end + kGap;
  }
  // Sorts ranges, and joins those that are near each other.
  static void Join(std::vector<TscRange>& ranges) {
    std::ranges::sort(ranges, {}, &TscRange::begin);
    size_t kept = 0;
    for (const TscRange& range : ranges) {
      if (kept > 0 && IsNear(range.begin, ranges[kept - 1])) {
        ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
      } else {
        ranges[kept++] = range;
      }
    }
    ranges.resize(kept);
  }
  // Adds a range; where there is no room, joins the two that are nearest each other.
  void Keep(TscRange range) {
    ranges_.push_back(range);
    if (ranges_.size() <= kMost) return;
    Join(ranges_);
    if (ranges_.size() <= kMost) return;
    size_t nearest = 1;
    const auto gap = [this](size_t i) { return ranges_[i].begin - ranges_[i - 1].end; };
    for (size_t i = 2; i < ranges_.size(); ++i) {
      if (gap(i) < gap(nearest)) nearest = i;
    }
    ranges_[nearest - 1].end = ranges_[nearest].end;
    ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(nearest));
  }

  TscRange last_;                 // the one that was added to last; empty at first
  std::vector<TscRange> ranges_;  // the others, in any order
};

}  // namespace xenoscope::correlate
