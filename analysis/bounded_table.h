// Counts by numbers that a guest chooses (ports, addresses, MSRs, page tables): a hash table that
// stops growing, so that no guest can make a report eat memory.
//
// A table takes at most `most` keys, and all tables that share a Room together no more than it has.
// What comes after that is for the caller to count as a remainder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace xenoscope::analysis {

struct TableKey {
  uint64_t number = 0;
  uint32_t tag = 0;  // what kind of number
  bool operator==(const TableKey&) const = default;
};

// How many more keys the tables of an analysis may take, together.
struct Room {
  uint32_t left = 0;
};

template <typename Value>
class BoundedTable {
 public:
  // The value of the key, made at its first use; null when the key is new and the table, or the
  // room, is full. O(1) without allocation for a known key. Values stay where they are.
  Value* Find(const TableKey& key, uint32_t most, Room& room) {
    if (slots_.empty()) [[unlikely]] {
      Grow();
    }
    size_t at = Place(key);
    for (; slots_[at].value != nullptr; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].value;
    }
    if (entries_.size() >= most || room.left == 0) return nullptr;
    --room.left;
    return &Insert(key, at);
  }
  // The same, full or not: for the caller's remainders, of which there must be few.
  Value& Demand(const TableKey& key) {
    Room one{1};
    return *Find(key, std::numeric_limits<uint32_t>::max(), one);
  }

  // The value of the key, or null. For describing, not for counting.
  const Value* Known(const TableKey& key) const {
    if (slots_.empty()) return nullptr;
    size_t at = Place(key);
    while (slots_[at].value != nullptr && !(slots_[at].key == key)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].value;
  }

  // visit(const TableKey&, const Value&), in the order of the keys' first use.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const Entry& entry : entries_) visit(entry.key, entry.value);
  }
  template <typename Visit>
  void ForEach(Visit&& visit) {
    for (Entry& entry : entries_) visit(std::as_const(entry.key), entry.value);
  }
  size_t size() const { return entries_.size(); }

  // Becomes what it would be had it been given what `earlier` was given, and then what it was given
  // itself. merge(Value& into, Value& from) adds two values of a key; what finds no room (of the
  // earlier table's) is for spill(const TableKey&, Value&). Values move.
  template <typename Merge, typename Spill>
  void Prepend(BoundedTable& earlier, uint32_t most, Room& room, Merge&& merge, Spill&& spill) {
    std::swap(slots_, earlier.slots_);
    std::swap(mask_, earlier.mask_);
    std::swap(entries_, earlier.entries_);
    for (Entry& entry : earlier.entries_) {
      Value* value = Find(entry.key, most, room);
      if (value != nullptr) {
        merge(*value, entry.value);
      } else {
        spill(std::as_const(entry.key), entry.value);
      }
    }
  }

 private:
  struct Entry {
    TableKey key;
    Value value;
  };
  struct Slot {
    TableKey key;
    Value* value = nullptr;  // in entries_; null: free
  };

  size_t Place(const TableKey& key) const {
    const uint64_t mixed = (key.number ^ (uint64_t{key.tag} << 40)) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed >> 32) & mask_;
  }
  Value& Insert(const TableKey& key, size_t at) {
    Value& value = entries_.emplace_back(Entry{key, {}}).value;
    slots_[at] = {key, &value};
    if (entries_.size() * 2 > slots_.size()) Grow();
    return value;
  }
  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kFirstSlots : slots_.size() * 2);
    std::swap(old, slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.value == nullptr) continue;
      size_t at = Place(slot.key);
      while (slots_[at].value != nullptr) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }

  static constexpr size_t kFirstSlots = 32;  // a power of two
  std::vector<Slot> slots_;                  // at most half full
  size_t mask_ = 0;                          // one less than there are slots
  std::deque<Entry> entries_;
};

}  // namespace xenoscope::analysis
