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
    std::vector<uint64_t> kept{};  // the same in each interval, up to the last that has any
  };

  // Limit of distinct keys that are kept apart; later keys are counted under kOtherKey.
  static constexpr size_t kMaxLines = 8192;
  static constexpr uint64_t kOtherKey = UINT64_MAX;
  // Limit of the intervals of all lines together that are kept.
  static constexpr size_t kMaxKept = size_t{1} << 19;

  // Keeps what each interval of `length` cycles, from `begin` on, has, unless there are too many.
  void KeepIntervals(Tsc begin, Cycles length) {
    begin_ = begin;
    length_ = length;
  }
  // Whether it has done so, for all that was added.
  [[nodiscard]] bool keeps_intervals() const { return length_ != 0; }
  // Forgets all that was added.
  void Clear() {
    lines_.clear();
    by_key_.clear();
    kept_ = 0;
  }

  // Gives the key a line of its own, before any limit applies.
  void Keep(uint64_t key) {
    if (by_key_.emplace(key, lines_.size()).second) lines_.emplace_back(Line{key, 0, 0});
  }
  // Begins the next interval, [begin, ...).
  void Begin(Tsc begin) {
    begin_ = begin;
    for (Line& line : lines_) line.in_interval = 0;
  }
  void Count(uint64_t key, Tsc at, uint64_t count) {
    Line& line = At(key);
    line.in_interval += count;
    line.total += count;
    if (keeps_intervals()) AddTo(line, IntervalOf(at), count);
  }
  // Adds a range that has ended. The part before this interval was added by Carry to earlier ones.
  void Close(uint64_t key, TscRange range) {
    Line& line = At(key);
    line.in_interval += range.end - std::max(range.begin, begin_);
    line.total += range.Length();
    if (keeps_intervals()) KeepParts(line, range);
  }
  // Adds, at the interval's end, the part of a range that began at `since` and is still open.
  void Carry(uint64_t key, Tsc since, Tsc end) {
    At(key).in_interval += end - std::max(since, begin_);
  }

  // Adds the totals of the part of the trace before, of which the lines come first.
  void Merge(const IntervalSums& earlier) {
    IntervalSums both = earlier;
    if (!keeps_intervals()) both.Drop();
    for (const Line& line : lines_) {
      Line& sum = both.At(line.key);
      sum.total += line.total;
      for (size_t i = 0; both.keeps_intervals() && i < line.kept.size(); ++i) {
        both.AddTo(sum, i, line.kept[i]);
      }
    }
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

  // Returns the interval that the instant is in: the first one, if it is before that.
  [[nodiscard]] uint64_t IntervalOf(Tsc at) {
    if (!last_.Contains(at)) {
      last_number_ = (at - begin_) / length_;
      const Tsc begin = begin_ + last_number_ * length_;
      last_ = {begin, begin + std::min(length_, Tsc{UINT64_MAX} - begin)};
    }
    return last_number_;
  }
  void AddTo(Line& line, uint64_t interval, uint64_t amount) {
    if (interval >= line.kept.size()) {
      const uint64_t more = interval + 1 - line.kept.size();
      if (more > kMaxKept - kept_) return Drop();
      kept_ += more;
      line.kept.resize(interval + 1);
    }
    line.kept[interval] += amount;
  }
  void KeepParts(Line& line, TscRange range) {
    range.begin = std::max(range.begin, begin_);
    if (range.Empty()) return;
    if ((range.end - begin_) / length_ >= kMaxKept) return Drop();
    while (keeps_intervals() && !range.Empty()) {
      const uint64_t interval = IntervalOf(range.begin);
      const Tsc end = std::min(range.end, last_.end);
      AddTo(line, interval, end - range.begin);
      range.begin = end;
    }
  }
  // Keeps no intervals from now on.
  void Drop() {
    length_ = 0;
    for (Line& line : lines_) line.kept = {};
  }

  Tsc begin_;
  Cycles length_ = 0;  // of the intervals that are kept; 0: none are
  TscRange last_;      // the last one that was asked for, and its number
  uint64_t last_number_ = 0;
  size_t kept_ = 0;  // the size of Line::kept of all lines
  std::vector<Line> lines_;
  absl::flat_hash_map<uint64_t, size_t> by_key_;
};

}  // namespace xenoscope::analysis
