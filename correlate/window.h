// The latest of things that come in the order of time: new ones at the end, the oldest are
// forgotten.
#pragma once

#include <cstddef>
#include <vector>

namespace xenoscope::correlate {

// One piece of memory, at most twice what is remembered: searching and going through it is what is
// done most.
template <typename T>
class Window {
 public:
  using Iterator = typename std::vector<T>::const_iterator;

  // O(1) amortised.
  void Add(const T& thing) { things_.push_back(thing); }
  // Forgets those at the beginning for which `is_old` holds. O(1) amortised for each.
  template <typename IsOld>
  void ForgetWhile(IsOld is_old) {
    while (first_ < things_.size() && is_old(things_[first_])) ++first_;
    if (2 * first_ <= things_.size()) return;
    things_.erase(things_.begin(), begin());
    first_ = 0;
  }

  Iterator begin() const { return things_.begin() + static_cast<std::ptrdiff_t>(first_); }
  Iterator end() const { return things_.end(); }
  T& back() { return things_.back(); }
  bool empty() const { return first_ == things_.size(); }
  size_t size() const { return things_.size() - first_; }

 private:
  std::vector<T> things_;
  size_t first_ = 0;  // that is not forgotten
};

}  // namespace xenoscope::correlate
