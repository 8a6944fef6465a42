// Numbers keys, from 0 on, in the order in which they first come.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"

namespace xenoscope {

// A table of keys and their numbers, for keys nearly all of which come again and again. The last
// key of each of `kPlaces` places is mostly the one that is wanted: it is found by one comparison,
// any other key in a hash map.
template <typename Key, size_t kPlaces>
class Interner {
 public:
  // Returns the key's number; that of a new key is the size before the call. `mixed` is any
  // function of the key, all bits of which select the key's place. O(1).
  uint32_t Intern(const Key& key, uint64_t mixed) {
    uint32_t& recent = recent_[MultiplyHash(mixed) >> kShift];
    if (recent < keys_.size() && keys_[recent] == key) [[likely]] {
      return recent;
    }
    const auto [at, is_new] = index_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
    if (is_new) keys_.push_back(key);
    recent = at->second;
    return recent;
  }

  [[nodiscard]] size_t size() const { return keys_.size(); }
  const Key& operator[](size_t number) const { return keys_[number]; }

  void Clear() {
    keys_.clear();
    index_.clear();
  }

 private:
  static_assert(std::has_single_bit(kPlaces) && kPlaces > 1);
  static constexpr int kShift = std::countl_zero(kPlaces) + 1;

  std::vector<Key> keys_;
  absl::flat_hash_map<Key, uint32_t> index_;
  std::array<uint32_t, kPlaces> recent_{};
};

}  // namespace xenoscope
