// Numbers for keys, from 0 on, in the order in which the keys first come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace xenoscope {

// For keys nearly all of which come again and again: the one that was last met at its place of
// `kPlaces` is mostly the one that is wanted, and is found by a comparison.
template <typename Key, size_t kPlaces>
class Interner {
 public:
  // The key's number; that of a new key is the size before. `mixed` is any function of the key, by
  // which it gets its place. O(1).
  uint32_t Intern(const Key& key, uint64_t mixed) {
    uint32_t& recent = recent_[mixed % kPlaces];
    if (recent < keys_.size() && keys_[recent] == key) [[likely]] {
      return recent;
    }
    const auto [at, is_new] = index_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
    if (is_new) keys_.push_back(key);
    recent = at->second;
    return recent;
  }

  size_t size() const { return keys_.size(); }
  const Key& operator[](size_t number) const { return keys_[number]; }

  void Clear() {
    keys_.clear();
    index_.clear();
  }

 private:
  std::vector<Key> keys_;
  absl::flat_hash_map<Key, uint32_t> index_;
  std::array<uint32_t, kPlaces> recent_{};
};

}  // namespace xenoscope
