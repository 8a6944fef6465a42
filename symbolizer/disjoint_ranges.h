// A map from addresses to owners: sorted, disjoint ranges, built in one sweep from ranges that may
// be nested or overlap. Where ranges overlap, the one that begins last owns the address; of those
// that begin together, the one that was opened last.
//
//   opened    A [0,100)   B [20,30)
//   ranges    gap | 0 A | 20 B | 30 A | 100 gap
#pragma once

#include <concepts>
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

  // Returns the owner of `address`, or kNoOwner. O(log n) without allocation; O(1) where ranges are
  // spread evenly.
  [[nodiscard]] uint32_t Find(Address address) const;

  // Calls use(begin, end, owner) for every range in order, gaps (kNoOwner) included; the last one
  // ends at kLastAddress.
  template <std::invocable<Address, Address, uint32_t> Use>
  void ForEach(const Use& use) const {
    for (size_t i = 0; i < starts_.size(); ++i) {
      use(starts_[i], i + 1 < starts_.size() ? starts_[i + 1] : kLastAddress, owners_[i]);
    }
  }

  // Appends the starts of ranges in (begin, end).
  void AppendStartsIn(Address begin, Address end, std::vector<Address>& starts) const;

  [[nodiscard]] bool empty() const { return starts_.size() <= 1; }
  // All owned ranges lie in [begin, end). Not to be called when there are none.
  [[nodiscard]] Address begin() const { return starts_[1]; }
  [[nodiscard]] Address end() const { return starts_.back(); }
  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  friend class RangeSweep;

  std::vector<Address> starts_ = {0};  // starts of ranges, ascending
  // Owner of the range that begins at the same index of starts_.
  std::vector<uint32_t> owners_ = {kNoOwner};
  // Indices in starts_ to begin a search with: [begin, end) is divided into buckets of
  // 2^bucket_bits_ bytes, each with the range that holds its first address.
  std::vector<uint32_t> hints_;
  Address begin_of_hints_ = 0;
  int bucket_bits_ = 0;
};

// The builder of DisjointRanges, from ranges in the order of their starts. O(n).
class RangeSweep {
 public:
  // Settles all ranges that end before `address`; open ones go on until there. To be called with
  // ascending addresses, and before Open with the same address.
  void CloseUntil(Address address);
  [[nodiscard]] bool IsOpen() const { return !open_.empty(); }
  // Opens [start, end), which is not empty and does not begin at address 0.
  void Open(Address start, Address end, uint32_t owner);
  DisjointRanges Finish() &&;

 private:
  struct OpenRange {
    Address end;
    uint32_t owner;
  };

  void Begin(Address start, uint32_t owner);

  DisjointRanges ranges_;
  std::vector<OpenRange> open_;  // stack of open ranges; the one that began last is on top
};

struct OwnedRange {
  Address begin = 0;
  Address end = 0;
  uint32_t owner = 0;
};

// Builds DisjointRanges from ranges in any order. Of those that begin together the one with the
// highest owner is opened last. Empty ranges, and those at address 0, are left out. O(n log n).
DisjointRanges MakeDisjoint(std::vector<OwnedRange> ranges);

}  // namespace xenoscope::symbolizer
