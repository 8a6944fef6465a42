// A table as data, before anybody has decided how to write it: columns with units, rows in groups,
// footer lines. table_text.h, table_csv.h and table_json.h write it.
//
// The words are the same everywhere: a column's key names it in CSV and JSON and never changes, its
// title is for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace xenoscope::report {

// What a column's numbers are, which says how text shows them. CSV and JSON write the plain number.
enum class ColumnUnit : uint8_t {
  kText,     // words; left-aligned, the only columns that are shortened
  kCount,    // 12,345; with one decimal where a cell of the column has a fraction
  kCycles,   // 16.5 G
  kBytes,    // 18.2 M
  kShare,    // a fraction of 1, shown as 48.93%
  kSeconds,  // 1.234 ms
  kHex,      // 0xffff82d040203120, in JSON a string
};

// Which part of a word that is too long is left out.
enum class Shorten : uint8_t {
  kMiddle,  // symbols: their namespace and their own name are at the ends
  kEnd,
};

struct Column {
  std::string key;
  std::string title;
  ColumnUnit unit = ColumnUnit::kText;
  Shorten shorten = Shorten::kMiddle;
};

// Empty where a row has nothing to say.
using Cell = std::variant<std::monostate, uint64_t, double, std::string>;

struct TableRow {
  std::vector<Cell> cells;  // as many as there are columns
  int indent = 0;           // levels by which text moves the first word of the row to the right
};

// Rows that belong together, under a row that sums them up.
struct RowGroup {
  std::vector<Cell> heading;  // empty: no such row. Text only; CSV and JSON write the rows.
  std::vector<TableRow> rows;
  size_t left_out = 0;  // rows that Limit took away
};

// A line under the table, in text only: a total, a remainder.
struct Footer {
  std::vector<Cell> cells;
};

struct Table {
  std::vector<Column> columns;
  std::vector<RowGroup> groups;
  std::vector<Footer> footers;

  // The column's index; columns.size() when there is none of that key.
  size_t Find(const std::string& key) const;
  // Adds to the last group, making a first one when there is none.
  TableRow& AddRow(std::vector<Cell> cells, int indent = 0);
  // Orders the rows of each group, and the groups by their headings. Stable: O(n log n).
  void Sort(size_t column, bool descending);
  // Keeps the first `rows` of each group; 0 keeps all.
  void Limit(size_t rows);
};

// Numbers before words, and among themselves by value; empty cells last.
bool Less(const Cell& a, const Cell& b);
// The number in the cell; 0 for words and empty cells.
double Number(const Cell& cell);

}  // namespace xenoscope::report
