// Finds numbers of keys that come in nearly the same order again and again, as the rows of
// consecutive slices do: then finding one costs a comparison.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xenoscope::store {

template <typename Key>
class SameOrder {
 public:
  // Begins a new pass over the keys.
  void Restart() {
    std::swap(before_, now_);
    now_.clear();
    next_ = 0;
  }
  // Forgets all keys.
  void Clear() {
    before_.clear();
    now_.clear();
    next_ = 0;
  }
  // Returns the key's number: that of the pass before, where it came at about this place, else what
  // `find` returns.
  template <typename Finder>
  uint32_t NumberOf(const Key& key, Finder find) {
    const Numbered* const known = Find(key);
    const uint32_t number = known != nullptr ? known->number : find(key);
    now_.push_back({key, number});
    return number;
  }

 private:
  struct Numbered {
    Key key;
    uint32_t number;
  };

  const Numbered* Find(const Key& key) {
    // So many keys may have come or gone: to look further would cost more than to find the key.
    constexpr size_t kAround = 4;
    const Numbered* const all = before_.data();
    const size_t here = std::min(next_, before_.size());
    const size_t end = std::min(here + kAround, before_.size());
    const size_t first = here - std::min(here, kAround);
    for (const auto& [from, to] : {std::pair(here, end), std::pair(first, here)}) {
      for (size_t at = from; at < to; ++at) {
        if (!(all[at].key == key)) continue;
        next_ = at + 1;
        return all + at;
      }
    }
    ++next_;  // most often another key is in the place of one that is gone
    return nullptr;
  }

  std::vector<Numbered> before_;
  std::vector<Numbered> now_;
  size_t next_ = 0;
};

}  // namespace xenoscope::store
