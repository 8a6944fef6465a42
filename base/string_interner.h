// Numbers texts, from 0 on, in the order in which they first come: for formats that keep a table of
// texts, and for rows that are found by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace xenoscope {

class StringInterner {
 public:
  // Returns the text's number. O(length) on the average; allocates only for a text that is new.
  uint32_t Intern(std::string_view text) {
    if (2 * all_.size() >= slots_.size()) Grow();
    const uint32_t hash = HashOf(text);
    Slot& slot = slots_[PlaceOf(text, hash)];
    if (slot.number == kFree) {
      slot = {hash, static_cast<uint32_t>(all_.size())};
      all_.emplace_back(text);
    }
    return slot.number;
  }
  // Returns the text's number, or nothing if it has none. O(length) on the average.
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view text) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[PlaceOf(text, HashOf(text))];
    if (slot.number == kFree) return std::nullopt;
    return slot.number;
  }

  // All texts, by number.
  const std::vector<std::string>& all() const { return all_; }

 private:
  // Texts are compared where their hashes are equal: most often that is one load for each slot.
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kFree;
  };
  static constexpr uint32_t kFree = ~uint32_t{0};
  static constexpr size_t kFirstSlots = 16;

  static uint32_t HashOf(std::string_view text) {
    const absl::string_view hashed(text.data(), text.size());
    return static_cast<uint32_t>(absl::Hash<absl::string_view>()(hashed));
  }
  // Returns the index of the text's slot, or of the free one where it belongs.
  [[nodiscard]] size_t PlaceOf(std::string_view text, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].number != kFree &&
           (slots_[at].hash != hash || all_[slots_[at].number] != text)) {
      at = (at + 1) & mask;
    }
    return at;
  }
  void Grow() {
    slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), {});
    for (uint32_t number = 0; number < all_.size(); ++number) {
      const uint32_t hash = HashOf(all_[number]);
      slots_[PlaceOf(all_[number], hash)] = {hash, number};
    }
  }

  std::vector<std::string> all_;
  std::vector<Slot> slots_;  // a power of two of them, at most half of which are taken
};

}  // namespace xenoscope
