// The bytes of tables that are made once for each file and kept in the cache: a head, then arrays.
// Any user may have written them, so they are checked when they are opened.
//
//   magic (8 bytes) | version (4) | CRC-32 of all that follows (4) | four counts (8 each) | arrays
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes.h"

namespace xenoscope::symbolizer {

// What a table is.
struct CachedTableKind {
  std::array<char, 8> magic;
  uint32_t version;       // to be raised with every change of the content
  std::string_view name;  // for messages: "a table of frames"
};

// The sizes of a table's arrays, as the kind of table defines them; 0 where it has fewer.
using CachedTableCounts = std::array<uint64_t, 4>;

// A reader of a table's arrays, in their order.
class CachedTable {
 public:
  // Checks the head and the checksum; O(bytes). Errors: it is another kind of table, or damaged.
  static absl::StatusOr<CachedTable> Open(Bytes bytes, const CachedTableKind& kind);

  [[nodiscard]] const CachedTableCounts& counts() const { return counts_; }
  // Takes `count` items of `size` bytes from the front; nothing if there are fewer.
  std::optional<Bytes> Take(uint64_t count, uint64_t size);
  // Returns what has not been taken.
  [[nodiscard]] Bytes rest() const { return rest_; }

 private:
  CachedTable(const CachedTableCounts& counts, Bytes rest) : counts_(counts), rest_(rest) {}

  CachedTableCounts counts_;
  Bytes rest_;
};

// Returns the bytes of a table with these arrays.
std::string MakeCachedTable(const CachedTableKind& kind, const CachedTableCounts& counts,
                            std::span<const Bytes> arrays);

}  // namespace xenoscope::symbolizer
