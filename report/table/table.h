// A table as data, which has no format yet: columns with units, rows in groups, footer lines.
// table_text.h, table_csv.h and table_json.h write it.
//
// The words are the same in all formats. A column's key names the column in CSV and JSON and never
// changes. Its title is for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace xenoscope::report {

// Who reads a table. Some columns are for programs only.
enum class Reader : uint8_t { kPeople, kProgram };

// The unit of a column's numbers. It decides how text shows them. CSV and JSON write the plain
// number.
enum class ColumnUnit : uint8_t {
  kText,     // words: left-aligned; only these columns are shortened
  kCount,    // 12,345; one decimal where a cell of the column has a fraction
  kCycles,   // 16.5 G
  kBytes,    // 18.2 M
  kShare,    // a fraction of 1, shown as 48.93%
  kRatio,    // 1.234, 12.34, 123.4, 1.23 k
  kSeconds,  // 1.234 ms
  kHex,      // 0xffff82d040203120; a string in JSON
};

// The part of a long word that is left out.
enum class Shorten : uint8_t {
  kMiddle,  // for symbols: the namespace and the function's name are at the ends
  kEnd,
};

// What text does with a column where the terminal is too narrow for all (table_text.h).
enum class Narrow : uint8_t {
  kKeep,
  kDrop,  // leaves it out
  // Makes one column of it and the next: "±" instead of the lower and upper end of an interval,
  // whose value is in the column before.
  kFold,
};

// A column: its key, title and unit, how it is shortened, and what a narrow terminal does to it.
struct Column {
  std::string key;
  std::string title;
  ColumnUnit unit = ColumnUnit::kText;
  Shorten shorten = Shorten::kMiddle;
  Narrow narrow = Narrow::kKeep;
};

// The content of a cell. It is empty where a row has no value.
using Cell = std::variant<std::monostate, uint64_t, double, std::string>;

// A row of a table.
struct TableRow {
  std::vector<Cell> cells;  // the cells, one for each column
  int indent = 0;           // the levels by which text indents the row's first word
};

// A group of rows under a heading row.
struct RowGroup {
  std::vector<Cell> heading;  // the heading, for text only; empty: no heading
  std::vector<TableRow> rows;
  size_t left_out = 0;  // the number of rows that Limit removed
};

// A line under the table, for text only: a total or a remainder.
struct Footer {
  std::vector<Cell> cells;
};

// A table: columns, groups of rows, and footer lines.
struct Table {
  std::vector<Column> columns;
  std::vector<RowGroup> groups;
  std::vector<Footer> footers;

  // Returns the index of the column with this key; columns.size() when there is none.
  size_t Find(const std::string& key) const;
  // Adds a row to the last group. Makes a group when there is none.
  TableRow& AddRow(std::vector<Cell> cells, int indent = 0);
  // Sorts the rows of each group, and the groups by their headings. The sort is stable: O(n log n).
  void Sort(size_t column, bool descending);
  // Keeps the first `rows` of each group; 0 keeps all.
  void Limit(size_t rows);
  // Removes the column. O(rows * columns).
  void RemoveColumn(size_t column);
};

// Whether `a` comes before `b`. Numbers come before words and are ordered by value; empty cells are
// last.
bool Less(const Cell& a, const Cell& b);
// Returns the number in the cell; 0 for words and empty cells.
double Number(const Cell& cell);

}  // namespace xenoscope::report
