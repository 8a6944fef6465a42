// A batch of a trace's items in the order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/tsc.h"
#include "report/dump/dump_line.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::report {

// An item in a batch, without what the file has of it.
struct Entry {
  Tsc tsc;
  // The byte of the record in the file, or the index in Batch::specials of an item that has none.
  uint64_t place;
  PackedVcpu running_vcpu;
  uint16_t pcpu_index;  // the index of the item's pCPU among the pCPUs of the trace
  uint8_t event_number;
  trace::ItemKind kind;

  [[nodiscard]] constexpr trace::Event event() const {
    return static_cast<trace::Event>(event_number);
  }
};
static_assert(trace::kEventCount <= 256);
static_assert(sizeof(Entry) == 24);

// Whether it is a record of a VMENTRY.
constexpr bool IsEntry(const Entry& entry) {
  return entry.kind == trace::ItemKind::kRecord && entry.event() == trace::Event::kHvmVmentry;
}

// Whether items of the kind are records in the file, from which they can be read again.
constexpr bool IsInFile(trace::ItemKind kind) {
  using trace::ItemKind;
  return kind == ItemKind::kRecord || kind == ItemKind::kUnknownEvent ||
         kind == ItemKind::kMalformed;
}

class Batch {
 public:
  // The entries that a batch may have, and the cycles between its first and its last one.
  static constexpr unsigned kIndexBits = 20;
  static constexpr size_t kMaxEntries = size_t{1} << kIndexBits;
  static constexpr Cycles kMaxSpan = (Cycles{1} << (64 - kIndexBits)) - 1;

  uint64_t number = 0;
  Tsc begin;                          // not later than any entry
  Tsc end;                            // not earlier than any entry
  std::vector<Entry> entries;         // those of one pCPU after the other
  std::vector<trace::Item> specials;  // the items that are not in the file
  // The vCPUs before the first entry, by the index of the pCPU.
  std::vector<PackedVcpu> running_vcpus;
  // The cycles since the VMEXIT, or kNoExit, of each entry that is a VMENTRY, in the order of time;
  // empty when they are not shown.
  std::vector<Cycles> exit_cycles;

  // Finds the order of time. Entries of one time come in the order of pCPUs. O(entries).
  void Sort();
  // Calls take(entry) for all entries in the order of time, after Sort.
  template <typename Take>
  void ForEach(const Take& take) const {
    ForEach(0, keys_.size(), take);
  }
  // The same for the entries with the numbers [first, last) in that order.
  template <typename Take>
  void ForEach(size_t first, size_t last, const Take& take) const {
    for (size_t i = first; i < last; ++i) take(entries[keys_[i] % kMaxEntries]);
  }
  // Returns the number of entries before the time. O(log entries), after Sort.
  [[nodiscard]] size_t CountBefore(Tsc at) const;

 private:
  // In the order of time. The lowest kIndexBits are the index of the entry.
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> spare_;
};

}  // namespace xenoscope::report
