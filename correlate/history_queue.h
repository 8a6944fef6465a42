// The latest of things that come in the order of time: new ones at the end, the oldest are
// forgotten.
#pragma once

#include <cstddef>
#include <vector>

namespace xenoscope::correlate {

// One piece of memory, at most twice what is remembered: searching and going through it is what is
// done most.
template <typename T>
class HistoryQueue {
 public:
  using Iterator = typename std::vector<T>::const_iterator;

  // O(1) amortised.
  void Add(const T& entry) { entries_.push_back(entry); }
  // Forgets those at the beginning for which `is_old` holds. O(1) amortised for each.
  template <typename IsOld>
  void DropWhile(IsOld is_old) {
    while (first_ < entries_.size() && is_old(entries_[first_])) ++first_;
    if (2 * first_ <= entries_.size()) return;
    entries_.erase(entries_.begin(), begin());
    first_ = 0;
  }

  Iterator begin() const { return entries_.begin() + static_cast<std::ptrdiff_t>(first_); }
  Iterator end() const { return entries_.end(); }
  T& back() { return entries_.back(); }
  bool empty() const { return first_ == entries_.size(); }
  size_t size() const { return entries_.size() - first_; }

 private:
  std::vector<T> entries_;
  size_t first_ = 0;  // that is not forgotten
};

}  // namespace xenoscope::correlate
