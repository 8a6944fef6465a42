// Counts by numbers that a guest chooses (ports, addresses, MSRs, page tables): a hash table that
// stops growing, so that no guest can make a report eat memory.
//
// A table takes at most `max_keys` keys, and all tables that share an EntryBudget together no more
// than it has. What comes after that counts for another key, the remainder's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace xenoscope::analysis {

struct TableKey {
  uint64_t number = 0;
  uint32_t tag = 0;  // what kind of number
  bool operator==(const TableKey&) const = default;
};

// How many more keys the tables of an analysis may take, together.
struct EntryBudget {
  uint32_t left = 0;
};

template <typename Value>
class BoundedTable {
 public:
  // The value of the key, made at its first use; null when the key is new and the table, or the
  // room, is full. O(1) without allocation for a known key. Values stay where they are.
  Value* Find(const TableKey& key, uint32_t max_keys, EntryBudget& budget) {
    if (slots_.empty()) [[unlikely]] {
      Grow();
    }
    const size_t at = Probe(key);
    if (slots_[at].value != nullptr) return slots_[at].value;
    if (entries_.size() >= max_keys || budget.left == 0) return nullptr;
    --budget.left;
    return &Insert(key, at);
  }
  // The value of the key, or of `remainder` when there is no room for the key.
  Value& At(const TableKey& key, const TableKey& remainder, uint32_t max_keys,
            EntryBudget& budget) {
    Value* value = Find(key, max_keys, budget);
    return value != nullptr ? *value : AtOverBudget(remainder);
  }
  // The value of the key, whether there is room or not: for remainders, of which there must be few.
  Value& AtOverBudget(const TableKey& key) {
    EntryBudget one{1};
    return *Find(key, std::numeric_limits<uint32_t>::max(), one);
  }

  // The value of the key, or null. For describing, not for counting.
  const Value* Known(const TableKey& key) const {
    return slots_.empty() ? nullptr : slots_[Probe(key)].value;
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
  // itself. merge(Value& into, Value& from) adds two values; what finds no room (of the earlier
  // table's) counts for remainder(key), which is its own remainder. Values move.
  template <typename Merge, typename Remainder>
  void Prepend(BoundedTable& earlier, uint32_t max_keys, EntryBudget& budget, Merge&& merge,
               Remainder&& remainder) {
    std::swap(slots_, earlier.slots_);
    std::swap(mask_, earlier.mask_);
    std::swap(entries_, earlier.entries_);
    for (Entry& entry : earlier.entries_) {
      const TableKey rest = remainder(std::as_const(entry.key));
      merge(entry.key == rest ? AtOverBudget(rest) : At(entry.key, rest, max_keys, budget),
            entry.value);
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
  // Where the key is, or the free slot where it belongs.
  size_t Probe(const TableKey& key) const {
    size_t at = Place(key);
    while (slots_[at].value != nullptr && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
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
      slots_[Probe(slot.key)] = slot;
    }
  }

  static constexpr size_t kFirstSlots = 32;  // a power of two
  std::vector<Slot> slots_;                  // at most half full
  size_t mask_ = 0;                          // one less than there are slots
  std::deque<Entry> entries_;
};

// The values by the number of their keys, ascending; for tables whose keys differ in that.
template <typename Value>
std::map<uint64_t, const Value*> ByNumber(const BoundedTable<Value>& table) {
  std::map<uint64_t, const Value*> sorted;
  table.ForEach([&](const TableKey& key, const Value& value) { sorted[key.number] = &value; });
  return sorted;
}

}  // namespace xenoscope::analysis
