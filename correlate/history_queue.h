// A queue of the latest entries of a series in the order of time: new ones come at the end, the
// oldest are forgotten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xenoscope::correlate {

// The entries lie in one piece of memory, which is at most twice as large as they are: they are
// mostly searched and gone through.
template <typename T>
class HistoryQueue {
 public:
  using Iterator = typename std::vector<T>::const_iterator;

  // O(1) amortised.
  void Add(const T& entry) { entries_.push_back(entry); }
  // Adds an entry, and returns it to be filled: a copy of what was written just before would wait
  // until that is in the cache. O(1) amortised.
  [[nodiscard]] T& Append() {
    static const T kBlank{};
    entries_.push_back(kBlank);
    return entries_.back();
  }
  // Forgets the entries for which `is_old` holds, which are the first ones. O(log entries), and
  // O(1) amortised for each.
  template <typename IsOld>
  void DropWhile(IsOld is_old) {
    first_ = static_cast<size_t>(std::partition_point(begin(), end(), is_old) - entries_.begin());
    if (2 * first_ <= entries_.size()) return;
    entries_.erase(entries_.begin(), begin());
    erased_ += first_;
    first_ = 0;
  }

  [[nodiscard]] Iterator begin() const {
    return entries_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  [[nodiscard]] Iterator end() const { return entries_.end(); }
  // Returns the entry, which is one of this queue, to be changed. O(1).
  [[nodiscard]] T& Mutable(Iterator entry) {
    return entries_[static_cast<size_t>(entry - entries_.begin())];
  }
  // Entries have numbers from 0 on in the order in which they came. Returns the first entry that is
  // not forgotten whose number is `number` or larger. O(1).
  [[nodiscard]] Iterator From(uint64_t number) const {
    const uint64_t first = erased_ + first_;
    return begin() + static_cast<std::ptrdiff_t>(
                         std::min<uint64_t>(number - std::min(number, first), size()));
  }
  // Returns the number that the next entry gets.
  [[nodiscard]] uint64_t next_number() const { return erased_ + entries_.size(); }
  T& back() { return entries_.back(); }
  [[nodiscard]] const T& back() const { return entries_.back(); }
  [[nodiscard]] bool empty() const { return first_ == entries_.size(); }
  [[nodiscard]] size_t size() const { return entries_.size() - first_; }

 private:
  std::vector<T> entries_;
  size_t first_ = 0;     // the index of the first entry that is not forgotten
  uint64_t erased_ = 0;  // how many entries were before those in entries_
};

}  // namespace xenoscope::correlate
