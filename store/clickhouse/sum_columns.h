// The table of sums in ClickHouse: its columns, and how rows of sums become rows of it and back.
//
// All kinds of sums are rows of one table, so that a slice is one block, which a MergeTree adds
// wholly or not at all. Columns that a kind does not have are empty or 0, which compresses to
// nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "store/clickhouse/row_binary.h"
#include "store/slice.h"
#include "store/tables.h"

namespace xenoscope::store {

// The table's name ends with the version of its columns.
inline constexpr std::string_view kSumTable = "sums_4";

// Returns the statement that makes the table where it is not there.
std::string CreateSumTable();
// Returns the statement whose data AppendSlice writes.
std::string InsertSums();

// The columns of a slice's head, which all of its rows have, and reading their values.
inline constexpr std::string_view kSliceColumns =
    "event, host, begin_ns, end_ns, clock_error_ns, clock_hz, is_time, traced, period";
SliceHead ReadHead(RowBinaryReader& in);

// Appends the rows of a slice: its head, of the kind 'slice', and all of its sums. `push` is the
// number of this attempt to push it. O(sums).
void AppendSlice(const Slice& slice, const Dictionary& dictionary, uint64_t push,
                 RowBinaryWriter& out);

// A slice that a joined one stands for: rows of this number are no longer counted.
struct Piece {
  uint64_t replaced = 0;  // the number of its push
  // When it was pushed, its time [begin, end); both 0 for a slice that was itself joined.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
// Appends the row of a piece of the joined slice that has this head, of the kind 'piece'. It goes
// into one INSERT with the rows of that slice, which has the number `push`. The piece stays as long
// as the joined slice, so that slices that are pushed again are known.
void AppendPiece(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out);
// Appends the mark that rows of the piece are no longer counted, of the kind 'replaced' and, so
// that questions find the few marks at the begin of the order key, of no event. It goes into the
// same INSERT, and stays until the rows of the piece are removed.
void AppendMark(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out);

// Where columns of a key stand in a statement: those that are not wanted are no part of GROUP BY,
// and constants in SELECT.
enum class Clause : uint8_t { kSelect, kGroupBy };

// Returns the columns of a key: "domain, vcpu". `name` is the column of the descriptions in
// store/tables.h, and `code` the set of CodeColumn that is wanted. It is empty where none is.
template <typename Key>
std::string ColumnsOfKey(std::string_view name, uint8_t code, Clause clause);

// Read the columns of a key. What is not good becomes what CheckSlice refuses, or ends the reader.
void ReadKey(RowBinaryReader& in, Dictionary& dictionary, VcpuNumber& key);
void ReadKey(RowBinaryReader& in, Dictionary& dictionary, ContextNumber& key);
void ReadKey(RowBinaryReader& in, Dictionary& dictionary, CodeNumber& key);
void ReadKey(RowBinaryReader& in, Dictionary& dictionary, uint8_t& key);
void ReadKey(RowBinaryReader& in, Dictionary& dictionary, std::string& key);
// Reads a sum.
void ReadSum(RowBinaryReader& in, double& sum);
void ReadSum(RowBinaryReader& in, uint64_t& sum);

// Calls visit.template operator()<kField>() for each field of a kind of sums.
template <typename Sums, typename Visitor>
void ForEachColumn(Visitor visit) {
  [&]<size_t... kField>(std::index_sequence<kField...> /*fields*/) {
    (visit.template operator()<kField>(), ...);
  }
  (std::make_index_sequence<Table<Sums>::kColumns.size()>());
}

template <typename Sums, size_t kField>
using ColumnType = std::remove_reference_t<
    std::tuple_element_t<kField, decltype(Table<Sums>::Fields(std::declval<Sums&>()))>>;

// Returns the columns of the keys of a kind of sums: "domain, vcpu, context, exit, both_modes".
template <typename Sums>
std::string KeyColumns(uint8_t code, Clause clause) {
  std::string columns;
  ForEachColumn<Sums>([&]<size_t kField>() {
    if constexpr (kField < Table<Sums>::kKeys) {
      const std::string more =
          ColumnsOfKey<ColumnType<Sums, kField>>(Table<Sums>::kColumns[kField], code, clause);
      if (!columns.empty() && !more.empty()) columns += ", ";
      columns += more;
    }
  });
  return columns;
}

// Returns what is read after them: "sum(cycles), sum(stays)".
template <typename Sums>
std::string SumsOfColumns() {
  std::string columns;
  for (size_t field = Table<Sums>::kKeys; field < Table<Sums>::kColumns.size(); ++field) {
    if (!columns.empty()) columns += ", ";
    columns += "sum(" + std::string(Table<Sums>::kColumns[field]) + ")";
  }
  return columns;
}

// Reads a row of these columns. The dictionary numbers the keys.
template <typename Sums>
void ReadSums(RowBinaryReader& in, Dictionary& dictionary, Sums& row) {
  ForEachColumn<Sums>([&]<size_t kField>() {
    auto&& field = std::get<kField>(Table<Sums>::Fields(row));
    if constexpr (kField < Table<Sums>::kKeys) {
      ReadKey(in, dictionary, field);
    } else {
      ReadSum(in, field);
    }
  });
}

}  // namespace xenoscope::store
