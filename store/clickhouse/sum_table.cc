#include "store/clickhouse/sum_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "store/clickhouse/sql_lists.h"
#include "store/named_sums.h"

namespace xenoscope::store {
namespace {

struct Column {
  std::string_view name;
  std::string_view type;
};

enum RowKind : int8_t { kSliceRow = 0, kPieceRow = 1, kMarkRow = 2 };

// In the order of AppendHead and AppendRest. `slices` and `gaps_ns` are Slice::count and gaps_ns;
// replaced and the times are a Piece; `names` and `packed` are a PackedSlice, `bytes` its size.
constexpr std::array kColumnsOfSlices = {
    Column{"kind", "Enum8('slice' = 0, 'piece' = 1, 'replaced' = 2)"},
    Column{"event", "String"},
    Column{"host", "String"},
    Column{"begin_ns", "Int64"},
    Column{"end_ns", "Int64"},
    Column{"clock_error_ns", "UInt64"},
    Column{"clock_hz", "UInt64"},
    Column{"is_time", "UInt8"},
    Column{"traced", "UInt8"},
    Column{"period", "Float64"},
    Column{"push", "UInt64"},
    Column{"slices", "UInt64"},
    Column{"gaps_ns", "Int64"},
    Column{"replaced", "UInt64"},
    Column{"piece_begin_ns", "Int64"},
    Column{"piece_end_ns", "Int64"},
    Column{"bytes", "UInt64"},
    Column{"names", "String"},
    Column{"packed", "String"}};

void AppendHead(RowKind kind, const SliceHead& head, uint64_t push, RowBinaryWriter& out) {
  out.Put(static_cast<int8_t>(kind));
  out.Put(head.event);
  out.Put(head.host);
  out.Put(head.begin_ns);
  out.Put(head.end_ns);
  out.Put(head.clock_error_ns);
  out.Put(head.clock_hz);
  out.Put(static_cast<uint8_t>(head.is_time));
  out.Put(static_cast<uint8_t>(head.traced));
  out.Put(head.period);
  out.Put(push);
}

void AppendRest(uint64_t slices, int64_t gaps_ns, const Piece& piece, const PackedSlice& packed,
                RowBinaryWriter& out) {
  out.Put(slices);
  out.Put(gaps_ns);
  out.Put(piece.replaced);
  out.Put(piece.begin_ns);
  out.Put(piece.end_ns);
  out.Put(uint64_t{packed.names.size() + packed.packed.size()});
  out.Put(packed.names);
  out.Put(packed.packed);
}

}  // namespace

std::string CreateSumTable() {
  std::string columns;
  for (const Column& column : kColumnsOfSlices) {
    columns += fmt::format("{} {}, ", column.name, column.type);
  }
  // Questions are of one event and kind, of some hosts, and of a time. What they read begins and
  // ends at a multiple of eight slices, each of which may be 100 kB.
  return fmt::format(
      "CREATE TABLE IF NOT EXISTS {} ({}{}) ENGINE = MergeTree PARTITION BY "
      "toDate(intDiv(begin_ns, 1000000000)) ORDER BY (event, kind, host, begin_ns) SETTINGS "
      "index_granularity = 8",
      kSumTable, columns, SqlListTypes());
}

std::string InsertSums() {
  std::string columns;
  for (const Column& column : kColumnsOfSlices) columns += fmt::format("{}, ", column.name);
  return fmt::format("INSERT INTO {} ({}{}) FORMAT RowBinary", kSumTable, columns,
                     SqlListColumns());
}

absl::Status AppendSlice(const Slice& slice, const Dictionary& dictionary, uint64_t push,
                         RowBinaryWriter& out) {
  XENOSCOPE_ASSIGN_OR_RETURN(const PackedSlice packed, PackNamed(slice.sums, dictionary));
  AppendHead(kSliceRow, slice.head, push, out);
  AppendRest(slice.count, slice.gaps_ns, {}, packed, out);
  AppendSqlLists(slice.sums, dictionary, out);
  return absl::OkStatus();
}

void AppendPiece(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out) {
  AppendHead(kPieceRow, joined, push, out);
  AppendRest(0, 0, piece, {}, out);
  AppendSqlLists({}, {}, out);
}

void AppendMark(const SliceHead& head, uint64_t replaced, uint64_t push, RowBinaryWriter& out) {
  SliceHead of_no_event = head;
  of_no_event.event.clear();
  AppendHead(kMarkRow, of_no_event, push, out);
  AppendRest(0, 0, {.replaced = replaced}, {}, out);
  AppendSqlLists({}, {}, out);
}

}  // namespace xenoscope::store
