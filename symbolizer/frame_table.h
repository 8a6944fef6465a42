// A flat table of the frames of addresses: what is known of a file's debug information, in the form
// in which index_cache.h stores it. It is used in place, without being parsed first.
//
// Little-endian, without padding:
//   header   48 bytes, below
//   starts   u64 each, ascending, the first 0: where ranges of addresses begin
//   owners   u32 each: a range's innermost frame, or kNoFrame, or kUnread
//   frames   6 u32 each: function, length of its name, file, length of its path (both offsets in
//            the texts), line, and the frame that it is inlined into, which has a lower number, or
//            kNoFrame
//   texts
// The table is not trusted: it is checked as if a stranger had written it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/code_frame.h"

namespace xenoscope::symbolizer {

class FrameTable {
 public:
  static constexpr uint32_t kNoFrame = ~uint32_t{0};
  static constexpr uint32_t kUnread = kNoFrame - 1;

  // An empty table, which has no address.
  FrameTable() = default;
  // Opens the table in `bytes`, which must outlive it. Error: damaged, cut off, or of another
  // version. O(bytes).
  static absl::StatusOr<FrameTable> Open(Bytes bytes);

  // Returns whether the address was among what was read when the table was made. If so, sets
  // `frames` to what DebugInfo::FramesAt returns. O(log n).
  [[nodiscard]] bool Find(Address address, std::vector<CodeFrame>& frames) const;
  [[nodiscard]] bool Knows(Address address) const { return OwnerAt(RangeOf(address)) != kUnread; }
  // Returns the starts of ranges in [begin, end), `begin` included.
  [[nodiscard]] std::vector<Address> StartsIn(Address begin, Address end) const;

 private:
  [[nodiscard]] uint64_t RangeOf(Address address) const;
  [[nodiscard]] Address StartAt(uint64_t range) const;
  [[nodiscard]] uint32_t OwnerAt(uint64_t range) const;
  [[nodiscard]] std::string_view TextAt(uint32_t at, uint32_t size) const;

  uint64_t ranges_ = 0;
  Bytes starts_;
  Bytes owners_;
  Bytes frames_;
  Bytes texts_;
};

// The writer of a table's bytes.
class FrameTableWriter {
 public:
  // The place of a text among the texts. Equal texts are stored once.
  struct Text {
    uint32_t at = 0;
    uint32_t size = 0;
    bool operator==(const Text&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Text& text) {
      return H::combine(std::move(hash), text.at, text.size);
    }
  };
  Text Keep(std::string_view text);
  // Returns the number of this frame, inlined into the frame `parent`, or into nothing.
  uint32_t Frame(Text function, Text file, uint32_t line, uint32_t parent = FrameTable::kNoFrame);
  // Gives addresses from `start` to the next start this frame. Starts ascend, from above 0.
  void Add(Address start, uint32_t frame);
  void Add(Address start, const std::vector<CodeFrame>& frames);

  // Returns the bytes; empty when the table would exceed its limit (4 GiB of texts).
  std::string Finish() &&;

 private:
  struct StoredFrame {
    Text function;
    Text file;
    uint32_t line = 0;
    uint32_t parent = FrameTable::kNoFrame;
    bool operator==(const StoredFrame&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const StoredFrame& frame) {
      return H::combine(std::move(hash), frame.function, frame.file, frame.line, frame.parent);
    }
  };

  std::vector<Address> starts_ = {0};
  std::vector<uint32_t> owners_ = {FrameTable::kNoFrame};
  std::vector<StoredFrame> frames_;
  std::string texts_;
  absl::flat_hash_map<std::string, Text> kept_;
  absl::flat_hash_map<StoredFrame, uint32_t> numbers_;
};

}  // namespace xenoscope::symbolizer
