// A table of counts by numbers that a guest chooses (ports, addresses, MSRs, page tables): a hash
// table whose size is bounded, so that no guest can make a report use up memory.
//
// A table takes at most `max_keys` keys, and all tables that share an EntryBudget take no more than
// that allows. Later keys are counted under the key of a remainder.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace xenoscope::analysis {

struct TableKey {
  uint64_t number = 0;
  uint32_t tag = 0;  // kind of number; each table has its own kinds
  bool operator==(const TableKey&) const = default;
};

// The number of keys that the tables of an analysis may take together: so many that they share, and
// some for each table that has any.
class EntryBudget {
 public:
  // Each vCPU has so many tables.
  explicit constexpr EntryBudget(uint32_t shared, uint32_t per_table = 0, uint32_t tables = 1)
      : shared_(shared), per_table_(per_table), tables_(tables), left_(shared) {}

  // Gives all back.
  void Restart() {
    left_ = shared_;
    refused_ = cut_ = false;
  }
  // Gives the tables of each of so many vCPUs (1 or more) their part of what all share. No table
  // takes another's from then on, so that nothing depends on the order of different vCPUs' keys.
  void DivideOver(size_t vcpus) {
    most_keys_ = std::max(static_cast<uint32_t>(shared_ / (vcpus * tables_)) + per_table_, 1U);
    shared_ = left_ = kUnlimited;
    per_table_ = 0;
  }
  // Lets each table take some more keys than in the end, as it is of a later part of a trace: what
  // an earlier part has (BoundedTable::Prepend) is not known yet.
  void BeginLaterPart() { factor_ = kFactorOfLaterPart; }

  void AddTable() { left_ += per_table_; }
  // Takes a key for a table that has `keys`, and may have `max_keys`. Returns whether it may.
  bool Take(size_t keys, uint32_t max_keys) {
    if (keys >= uint64_t{std::min(max_keys, most_keys_)} * factor_) {
      cut_ = factor_ > 1;
      return false;
    }
    if (left_ == 0) {
      refused_ = true;
      return false;
    }
    if (left_ != kUnlimited) --left_;
    return true;
  }
  // Whether a new key found no room in what tables share: which one, depends on the order of keys.
  [[nodiscard]] bool refused() const { return refused_; }
  // Whether a table of a later part has left out a key, which an earlier part may have.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  static constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kFactorOfLaterPart = 4;

  uint32_t shared_;
  uint32_t per_table_;
  uint32_t tables_;
  uint32_t left_;
  uint32_t most_keys_ = kUnlimited;
  uint32_t factor_ = 1;
  bool refused_ = false;
  bool cut_ = false;
};

template <typename Value>
class BoundedTable {
 public:
  // Returns the value of the key, made at its first use; null when the key is new and the table or
  // the budget is full. O(1) without allocation for a known key. Values keep their addresses.
  Value* Find(const TableKey& key, uint32_t max_keys, EntryBudget& budget) {
    if (slots_.empty()) [[unlikely]] {
      Grow();
      budget.AddTable();
    }
    const size_t at = Probe(key);
    if (slots_[at].value != nullptr) return slots_[at].value;
    return budget.Take(entries_.size(), max_keys) ? &Insert(key, at) : nullptr;
  }
  // Returns the value of the key, or that of `remainder` when there is no room for the key.
  Value& At(const TableKey& key, const TableKey& remainder, uint32_t max_keys,
            EntryBudget& budget) {
    Value* value = Find(key, max_keys, budget);
    return value != nullptr ? *value : AtOverBudget(remainder);
  }
  // Returns the value of the key, even beyond the limits: for remainders, of which there must be
  // few.
  Value& AtOverBudget(const TableKey& key) {
    EntryBudget one{1};
    return *Find(key, std::numeric_limits<uint32_t>::max(), one);
  }

  // Returns the value of the key, or null. For describing, not for counting.
  [[nodiscard]] const Value* Known(const TableKey& key) const {
    return slots_.empty() ? nullptr : slots_[Probe(key)].value;
  }

  // Calls visit(const TableKey&, const Value&) in the order of the keys' first use.
  template <std::invocable<const TableKey&, const Value&> Visit>
  void ForEach(Visit&& visit) const {
    for (const Entry& entry : entries_) visit(entry.key, entry.value);
  }
  template <std::invocable<const TableKey&, Value&> Visit>
  void ForEach(Visit&& visit) {
    for (Entry& entry : entries_) visit(std::as_const(entry.key), entry.value);
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }

  // Puts the content of `earlier` before that of this table, as if all had been counted here in
  // that order. merge(Value& into, Value& from) adds two values. A key that finds no room (in the
  // earlier table's budget) is counted for remainder(key), and a remainder for itself. Values move.
  template <std::invocable<Value&, Value&> Merge, std::regular_invocable<const TableKey&> Remainder>
  requires std::same_as<std::invoke_result_t<Remainder, const TableKey&>, TableKey>
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
    Value* value = nullptr;  // an element of entries_; null: the slot is free
  };

  // Returns the first bits of the hash, as many as mask_ has: only these depend on all of the key.
  [[nodiscard]] size_t Place(const TableKey& key) const {
    const uint64_t hash = MultiplyHash(key.number ^ (uint64_t{key.tag} << 40));
    return hash >> std::countl_zero(uint64_t{mask_});
  }
  // Returns the index of the key's slot, or of the free slot where it belongs.
  [[nodiscard]] size_t Probe(const TableKey& key) const {
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
  size_t mask_ = 0;                          // number of slots minus one
  std::deque<Entry> entries_;
};

// Returns the values by the number of their keys, ascending; for tables whose keys differ in that.
template <typename Value>
std::map<uint64_t, const Value*> ByNumber(const BoundedTable<Value>& table) {
  std::map<uint64_t, const Value*> sorted;
  table.ForEach([&](const TableKey& key, const Value& value) { sorted[key.number] = &value; });
  return sorted;
}

}  // namespace xenoscope::analysis
