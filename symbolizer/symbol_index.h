// A map from addresses to functions, for one list of symbols: sorted, disjoint ranges, built once.
//
// Every address belongs to one of the ranges; those without a function are gaps. Where functions
// overlap, the one that begins last holds the address. A function without a size reaches to the
// next symbol or end, at most kMaxUnsizedBytes bytes, and never lies inside one that has a size.
//
//   symbols   A [0,100)   B [20,30)   c 120 (no size)   end 130
//   ranges    gap | 0 A | 20 B | 30 A | 100 gap | 120 c | 130 gap
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/disjoint_ranges.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

// Limit of the length of a function without a size, in bytes. The longest function met is Xen's
// x86_emulate: 145 KiB in 4.17.
inline constexpr uint64_t kMaxUnsizedBytes = 256 * 1024;

class SymbolIndex {
 public:
  static constexpr uint32_t kNoSymbol = DisjointRanges::kNoOwner;

  // Builds the index. O(n log n). Copies the names. Error: no functions at all, or 4 GiB of names.
  static absl::StatusOr<SymbolIndex> Build(const SymbolTable& table);

  // Returns the function that holds `address`, as a number below size(), or kNoSymbol. O(log n),
  // without allocation.
  [[nodiscard]] uint32_t Find(Address address) const { return ranges_.Find(address); }

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(symbols_.size()); }
  [[nodiscard]] std::string_view Name(uint32_t symbol) const;
  [[nodiscard]] const std::string& Image(uint32_t symbol) const {
    return images_[symbols_[symbol].image];
  }
  // The function lies in [Start, End), where others may be nested.
  [[nodiscard]] Address Start(uint32_t symbol) const { return symbols_[symbol].start; }
  [[nodiscard]] Address End(uint32_t symbol) const { return symbols_[symbol].end; }

  // Returns the image that the index is named for: a kernel, not its modules.
  [[nodiscard]] const std::string& image() const { return images_.front(); }
  [[nodiscard]] bool HasSeveralImages() const { return images_.size() > 1; }
  // All functions lie in [begin, end).
  [[nodiscard]] Address begin() const { return ranges_.begin(); }
  [[nodiscard]] Address end() const { return ranges_.end(); }
  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  struct Entry {
    Address start = 0;
    Address end = 0;
    uint32_t name_at = 0;
    uint32_t name_size = 0;
    uint32_t image = 0;
  };

  SymbolIndex() = default;

  DisjointRanges ranges_;  // ranges, owned by indices in symbols_
  std::vector<Entry> symbols_;
  std::vector<std::string> images_;
  std::string names_;
};

}  // namespace xenoscope::symbolizer
