// A map from addresses to owners: sorted, disjoint ranges, built in one sweep from ranges that may
// lie inside each other or overlap. Where they do, the one that begins last holds the address; of
// those that begin together, the one that was opened last.
//
//   opened    A [0,100)   B [20,30)
//   ranges    gap | 0 A | 20 B | 30 A | 100 gap
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/mode.h"

namespace xenoscope::symbolizer {

inline constexpr Address kLastAddress = std::numeric_limits<Address>::max();

class DisjointRanges {
 public:
  static constexpr uint32_t kNoOwner = ~uint32_t{0};

  // The owner of `address`, or kNoOwner. O(log n), without allocation; where ranges are spread
  // evenly O(1).
  uint32_t Find(Address address) const;

  // Calls use(begin, end, owner) for every range, gaps (kNoOwner) too, in order; the last one ends
  // with kLastAddress.
  template <typename Use>
  void ForEach(const Use& use) const {
    for (size_t i = 0; i < starts_.size(); ++i) {
      use(starts_[i], i + 1 < starts_.size() ? starts_[i + 1] : kLastAddress, owners_[i]);
    }
  }

  // Appends where ranges begin in (begin, end).
  void AppendStartsIn(Address begin, Address end, std::vector<Address>& starts) const;

  bool empty() const { return starts_.size() <= 1; }
  // Owners' ranges lie in [begin, end); not to be called when there are none.
  Address begin() const { return starts_[1]; }
  Address end() const { return starts_.back(); }
  uint64_t MemoryUsed() const;

 private:
  friend class RangeSweep;

  std::vector<Address> starts_ = {0};          // ascending
  std::vector<uint32_t> owners_ = {kNoOwner};  // of the range from there on
  // Where in starts_ to search: [begin, end) is divided into buckets of 2^bucket_bits_ bytes, and
  // each has the range that holds its first address.
  std::vector<uint32_t> hints_;
  Address begin_of_hints_ = 0;
  int bucket_bits_ = 0;
};

// Makes DisjointRanges of ranges in order of their starts. O(n).
class RangeSweep {
 public:
  // What is open goes on until `address`, and ranges that end before are settled. To be called
  // with ascending addresses, and before Open with the same one.
  void CloseUntil(Address address);
  bool IsOpen() const { return !open_.empty(); }
  // [start, end), neither empty nor beginning at address 0.
  void Open(Address start, Address end, uint32_t owner);
  DisjointRanges Finish() &&;

 private:
  struct OpenRange {
    Address end;
    uint32_t owner;
  };

  void Begin(Address start, uint32_t owner);

  DisjointRanges ranges_;
  std::vector<OpenRange> open_;  // a stack, the one that began last on top
};

struct OwnedRange {
  Address begin = 0;
  Address end = 0;
  uint32_t owner = 0;
};

// Of ranges in any order; of those that begin together the one with the highest owner is opened
// last. Empty ranges, and those at address 0, are left out. O(n log n).
DisjointRanges MakeDisjoint(std::vector<OwnedRange> ranges);

}  // namespace xenoscope::symbolizer
