// The table of slices in ClickHouse: its columns, and how slices become rows of it.
//
// A slice is one row, so that it is there wholly or not at all. Reports read its head and its
// packed sums. SQL reads columns that are lists: `parts.function` has as many elements as
// `parts.x`, and ARRAY JOIN makes rows of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "store/clickhouse/row_binary.h"
#include "store/slice.h"

namespace xenoscope::store {

// The table's name ends with the version of its columns.
inline constexpr std::string_view kSumTable = "sums_5";

// Returns the statement that makes the table where it is not there.
std::string CreateSumTable();
// Returns the statement whose data the functions below write.
std::string InsertSums();

// Appends the row of a slice. `push` is the number of this attempt to push it. Errors: those of
// PackNamed. O(sums log(sums)).
absl::Status AppendSlice(const Slice& slice, const Dictionary& dictionary, uint64_t push,
                         RowBinaryWriter& out);

// A slice that another one stands for: rows of this number are no longer counted.
struct Piece {
  uint64_t replaced = 0;  // the number of its push
  // When it was pushed, its time [begin, end); both 0 for a slice that was itself joined.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
// Appends the row of a piece of the joined slice that has this head, of the kind 'piece'. It goes
// into one INSERT with the row of that slice, which has the number `push`. The piece stays as long
// as the joined slice, so that slices that are pushed again are known.
void AppendPiece(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out);
// Appends the mark that a slice is no longer counted, of the kind 'replaced' and, so that questions
// find the few marks at the begin of the order key, of no event. `head` is that of the slice that
// stands for it. Both go into one INSERT; the mark stays until the slice is removed.
void AppendMark(const SliceHead& head, uint64_t replaced, uint64_t push, RowBinaryWriter& out);

}  // namespace xenoscope::store
