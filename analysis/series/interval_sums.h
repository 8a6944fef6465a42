// The sums of a series' lines in the current interval: counts, and lengths of time in cycles, of
// which each interval gets the part that lies in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/tsc.h"

namespace xenoscope::analysis {

class IntervalSums {
 public:
  struct Line {
    uint64_t key = 0;
    uint64_t in_interval = 0;  // count, or cycles, in the current interval so far
    uint64_t total = 0;  // count, or cycles of the ranges that were closed, over the whole trace
  };

  // Limit of distinct keys that are kept apart; later keys are counted under kOtherKey.
  static constexpr size_t kMaxLines = 8192;
  static constexpr uint64_t kOtherKey = UINT64_MAX;

  // Gives the key a line of its own, before any limit applies.
  void Keep(uint64_t key) {
    if (by_key_.emplace(key, lines_.size()).second) lines_.emplace_back(Line{key, 0, 0});
  }
  // Begins the next interval, [begin, ...).
  void Begin(Tsc begin) {
    begin_ = begin;
    for (Line& line : lines_) line.in_interval = 0;
  }
  void Count(uint64_t key, uint64_t count) {
    Line& line = At(key);
    line.in_interval += count;
    line.total += count;
  }
  // Adds a range that has ended. The part before this interval was added by Carry to earlier ones.
  void Close(uint64_t key, TscRange range) {
    Line& line = At(key);
    line.in_interval += range.end - std::max(range.begin, begin_);
    line.total += range.Length();
  }
  // Adds, at the interval's end, the part of a range that began at `since` and is still open.
  void Carry(uint64_t key, Tsc since, Tsc end) {
    At(key).in_interval += end - std::max(since, begin_);
  }

  // Adds the totals of the part of the trace before, of which the lines come first.
  void Follow(const IntervalSums& earlier) {
    IntervalSums both = earlier;
    for (const Line& line : lines_) both.At(line.key).total += line.total;
    *this = std::move(both);
  }
  // Whether later keys may have been counted under kOtherKey: those that came first then have
  // lines.
  [[nodiscard]] bool is_full() const { return lines_.size() >= kMaxLines; }

  // Returns the lines in the order of their first appearance.
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

 private:
  Line& At(uint64_t key) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) return lines_[found->second];
    if (lines_.size() >= kMaxLines && key != kOtherKey) return At(kOtherKey);
    by_key_.emplace(key, lines_.size());
    return lines_.emplace_back(Line{key, 0, 0});
  }

  Tsc begin_;
  std::vector<Line> lines_;
  absl::flat_hash_map<uint64_t, size_t> by_key_;
};

}  // namespace xenoscope::analysis
