// A queue of the latest entries of a series in the order of time: new ones come at the end, the
// oldest are forgotten.
#pragma once

#include <cstddef>
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
  // Forgets the entries at the beginning for which `is_old` holds. O(1) amortised for each.
  template <typename IsOld>
  void DropWhile(IsOld is_old) {
    while (first_ < entries_.size() && is_old(entries_[first_])) ++first_;
    if (2 * first_ <= entries_.size()) return;
    entries_.erase(entries_.begin(), begin());
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
  T& back() { return entries_.back(); }
  [[nodiscard]] const T& back() const { return entries_.back(); }
  [[nodiscard]] bool empty() const { return first_ == entries_.size(); }
  [[nodiscard]] size_t size() const { return entries_.size() - first_; }

 private:
  std::vector<T> entries_;
  size_t first_ = 0;  // the index of the first entry that is not forgotten
};

}  // namespace xenoscope::correlate
