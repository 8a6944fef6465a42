// Sums over time, of many things at once: how much of each there was in bins of equal length.
// Memory is bounded, whatever the length of time: when there are too many bins, pairs are merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tsc.h"

namespace xenoscope::correlate {

// An amount in a bin of time.
struct BinAmount {
  uint64_t bin = 0;
  double amount = 0;
};

class BinnedSums {
 public:
  // At most `max_bins` bins of time, and after Finish `max_entries` entries unless there are more
  // things.
  explicit BinnedSums(size_t max_bins = 256, size_t max_entries = 300'000)
      : max_bins_(max_bins), max_entries_(max_entries) {}

  // Adds the amount of `key` evenly over the range; an empty range is the instant of its begin.
  // Keys are small numbers: memory is O(largest key). O(bins of the range); fastest when the
  // amounts of a key come in the order of time.
  void Add(uint32_t key, TscRange when, double amount) {
    const uint64_t bin = when.begin.value >> shift_;
    const uint64_t last = when.Empty() ? bin : (when.end.value - 1) >> shift_;
    const bool continues = bin == last && key < amounts_.size() && !amounts_[key].empty() &&
                           amounts_[key].back().bin == bin;
    if (continues) {
      amounts_[key].back().amount += amount;
    } else {
      AddToBins(key, when, amount);
    }
  }

  // What a key has in the bin of an instant, before it is in the sums. The caller keeps it beside
  // what else it has of the key: the processor's caches do not hold the sums of many keys.
  struct Open {
    Tsc at;
    double amount = 0;
  };
  // The same for the key whose `open` this is, which is to be closed in the end. O(1) mostly.
  void Add(uint32_t key, TscRange when, double amount, Open& open) {
    const uint64_t bin = when.begin.value >> shift_;
    const uint64_t last = when.Empty() ? bin : (when.end.value - 1) >> shift_;
    if (bin == last && open.at.value >> shift_ == bin) {
      open.amount += amount;
      return;
    }
    Close(key, open);
    if (bin == last) {
      open = {when.begin, amount};
    } else {
      Add(key, when, amount);
    }
  }
  // The same for an amount of an instant. O(1) mostly.
  void AddAt(uint32_t key, Tsc at, double amount, Open& open) {
    if (!AreInBinOf(open.at, at, 0)) {
      Close(key, open);
      open.at = at;
    }
    open.amount += amount;
  }
  // Puts what is open into the sums.
  void Close(uint32_t key, Open& open) {
    if (open.amount != 0) Add(key, {open.at, open.at}, open.amount);
    open = {};
  }
  // Says which part of the amounts has come, in [0, 1], roughly. As long as few have, bins become
  // as long as they will need to be, instead of twice as long again and again. Without it, all
  // have.
  void SetPartCome(double part) { part_come_ = part; }
  // Makes the entries `max_entries` at most, after the last amount: before, there may be a quarter
  // more. O(n log n).
  void Finish() {
    part_come_ = 1;
    ShrinkAll();
  }

  // Whether instants are all in the bin that has the instant `at`: `first` is one of them, and the
  // others differ from it in the bits `differences` at most. O(1).
  [[nodiscard]] bool AreInBinOf(Tsc at, Tsc first, uint64_t differences) const {
    return ((at.value ^ first.value) | differences) >> shift_ == 0;
  }
  // The length of a bin in cycles. The bin `i` is [i, i + 1) * width() of the TSC.
  [[nodiscard]] Cycles width() const { return Cycles{1} << shift_; }
  // Returns the amounts of each key below `keys`, by bin; other keys have none. O(n log n).
  [[nodiscard]] std::vector<std::vector<BinAmount>> ByKey(size_t keys) const;

 private:
  void AddToBins(uint32_t key, TscRange when, double amount);
  // Where there are too many bins, or a quarter too many entries (going through all must be rare),
  // doubles the length of bins until neither is so.
  void Shrink() {
    if (last_ - first_ >= max_bins_ || entries_ > max_entries_ + max_entries_ / 4) ShrinkAll();
  }
  void ShrinkAll();
  // The most entries that are left where there are too many: one for each key, and as many more as
  // have come of those for which there is room.
  [[nodiscard]] size_t Target() const {
    constexpr double kLeast = 0.125;
    const size_t least = std::min(keys_, max_entries_);
    const auto room = static_cast<double>(max_entries_ - least);
    return least + static_cast<size_t>(std::max(part_come_, kLeast) * room);
  }
  // Adds up what each key has of one bin.
  void Combine();

  size_t max_bins_;
  size_t max_entries_;
  double part_come_ = 1;
  unsigned shift_ = 10;
  uint64_t first_ = UINT64_MAX;  // the first and the last bin
  uint64_t last_ = 0;
  // By key, in the order in which they came: where that is not the order of time, a bin comes
  // again.
  std::vector<std::vector<BinAmount>> amounts_;
  size_t entries_ = 0;  // in amounts_
  size_t keys_ = 0;     // that had an amount when they were combined last
};

}  // namespace xenoscope::correlate
