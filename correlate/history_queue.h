// A queue of the latest entries of a series in the order of time: new ones come at the end, the
// oldest are forgotten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace xenoscope::correlate {

// The entries lie in one piece of memory, which is at most four times as large as the most that
// there were: they are mostly searched and gone through.
template <typename T>
class HistoryQueue {
 public:
  using Iterator = const T*;

  // O(1) amortised.
  void Add(const T& entry) { Append() = entry; }
  // Adds an entry, and returns it to be filled: all of it, as a forgotten entry may be there. A
  // copy of what was written just before would wait until that is in the cache. O(1) amortised.
  [[nodiscard]] T& Append() {
    if (end_ == capacity_) [[unlikely]] {
      Grow();
    }
    return places_[end_++];
  }
  // Forgets the entries for which `is_old` holds, which are the first ones. O(log entries), and
  // O(1) amortised for each.
  template <typename IsOld>
  void DropWhile(IsOld is_old) {
    DropTo(static_cast<size_t>(std::partition_point(begin(), end(), is_old) - places_.get()));
  }
  // Forgets all but the last `count` entries, where there are four times as many. O(1) amortised
  // for each that was added.
  void KeepLast(size_t count) {
    if (size() >= 4 * count) DropTo(end_ - count);
  }

  [[nodiscard]] Iterator begin() const { return places_.get() + first_; }
  [[nodiscard]] Iterator end() const { return places_.get() + end_; }
  // Returns the entry, which is one of this queue, to be changed. O(1).
  [[nodiscard]] T& Mutable(Iterator entry) { return places_[entry - places_.get()]; }
  // Entries have numbers from 0 on in the order in which they came. Returns the first entry that is
  // not forgotten whose number is `number` or larger. O(1).
  [[nodiscard]] Iterator From(uint64_t number) const {
    const uint64_t first = erased_ + first_;
    return begin() + std::min<uint64_t>(number - std::min(number, first), size());
  }
  // Returns the number that the next entry gets.
  [[nodiscard]] uint64_t next_number() const { return erased_ + end_; }
  T& back() { return places_[end_ - 1]; }
  [[nodiscard]] const T& back() const { return places_[end_ - 1]; }
  [[nodiscard]] bool empty() const { return first_ == end_; }
  [[nodiscard]] size_t size() const { return end_ - first_; }

 private:
  // Forgets the entries before the place `first`.
  [[gnu::noinline]] void DropTo(size_t first) {
    first_ = first;
    if (2 * first_ < end_) return;
    std::copy(begin(), end(), places_.get());
    erased_ += first_;
    end_ -= std::exchange(first_, 0);
  }
  [[gnu::noinline]] void Grow() {
    capacity_ = std::max<size_t>(2 * capacity_, 16);
    auto larger = std::make_unique<T[]>(capacity_);
    std::copy(places_.get(), places_.get() + end_, larger.get());
    places_ = std::move(larger);
  }

  std::unique_ptr<T[]> places_;  // of entries, and of more that come
  size_t capacity_ = 0;          // the number of places
  size_t first_ = 0;             // the index of the first entry that is not forgotten
  size_t end_ = 0;               // behind the last entry
  uint64_t erased_ = 0;          // how many entries were before those in places_
};

}  // namespace xenoscope::correlate
