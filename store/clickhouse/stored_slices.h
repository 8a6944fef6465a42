// The slices of an answer of a ClickHouse server, which may be anyone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/clickhouse/conditions.h"
#include "store/slice.h"

namespace xenoscope::store {

// A slice as the table has it.
struct StoredSlice {
  SliceHead head;
  uint64_t push = 0;
  uint64_t count = 1;  // Slice::count and gaps_ns
  int64_t gaps_ns = 0;
  // Two processes pushed it at the same moment, so that it is there twice: the one before counts.
  bool again = false;
  // Its sums (store/named_sums.h), in the answer; nothing where heads alone were asked for.
  std::string_view names;
  Bytes packed;
};

enum class SliceColumns : uint8_t { kHeads, kAll };

// Returns the statement that asks for the slices of a range, and for marks of those for which
// others stand. It reads both in one pass over the table, so that what another process joins
// meanwhile is seen wholly or not at all.
std::string SelectSlices(const Range& range, SliceColumns columns);

class StoredSlices {
 public:
  // Reads the answer to SelectSlices. Returns nothing if it is not of this form. O(answer).
  static std::optional<StoredSlices> Parse(std::string answer);

  // Returns the answer, whose memory may be used again.
  static std::string TakeAnswer(StoredSlices slices) { return std::move(*slices.answer_); }

  // Those for which no other one stands, host by host, each host's in the order of time.
  [[nodiscard]] const std::vector<StoredSlice>& all() const { return all_; }

 private:
  explicit StoredSlices(std::string answer)
      : answer_(std::make_unique<std::string>(std::move(answer))) {}

  std::unique_ptr<std::string> answer_;  // what texts of slices are parts of
  std::vector<StoredSlice> all_;
};

}  // namespace xenoscope::store
