#include "report/table/narrow_table.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace xenoscope::report {
namespace {

bool IsNumber(const Cell& cell) {
  return std::holds_alternative<double>(cell) || std::holds_alternative<uint64_t>(cell);
}

// Folds the ends at `low` and `low` + 1 of a row into the first one.
void FoldRow(size_t low, std::vector<Cell>& cells) {
  if (low + 1 >= cells.size()) return;
  Cell& end = cells[low];
  if (std::holds_alternative<std::string>(end)) return;
  const Cell& value = cells[low - 1];
  if (!IsNumber(end) || !IsNumber(cells[low + 1]) || !IsNumber(value)) {
    end = Cell();
    return;
  }
  end = std::max(Number(value) - Number(end), Number(cells[low + 1]) - Number(value));
}

}  // namespace

bool CanNarrow(const Table& table) {
  return std::ranges::any_of(table.columns,
                             [](const Column& column) { return column.narrow != Narrow::kKeep; });
}

void DropColumns(Table& table) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    if (table.columns[i].narrow == Narrow::kDrop) table.RemoveColumn(i);
  }
}

void FoldIntervals(Table& table) {
  for (size_t i = table.columns.size(); i-- > 1;) {
    if (table.columns[i].narrow != Narrow::kFold) continue;
    for (RowGroup& group : table.groups) {
      FoldRow(i, group.heading);
      for (TableRow& row : group.rows) FoldRow(i, row.cells);
    }
    for (Footer& footer : table.footers) FoldRow(i, footer.cells);
    table.columns[i].title = "±";
    table.RemoveColumn(i + 1);
  }
}

}  // namespace xenoscope::report
