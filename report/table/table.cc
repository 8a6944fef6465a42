#include "report/table/table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace xenoscope::report {
namespace {

const Cell& At(const std::vector<Cell>& cells, size_t column) {
  static const Cell kEmpty;
  return column < cells.size() ? cells[column] : kEmpty;
}

// Returns the rank of a cell: 0 for numbers, 1 for words, 2 for empty cells.
int Rank(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return 2;
  return std::holds_alternative<std::string>(cell) ? 1 : 0;
}

// Whether `a` comes before `b`. Empty cells are last in either direction.
bool Before(const Cell& a, const Cell& b, bool descending) {
  const bool empty_a = Rank(a) == 2;
  const bool empty_b = Rank(b) == 2;
  if (empty_a || empty_b) return !empty_a && empty_b;
  return descending ? Less(b, a) : Less(a, b);
}

}  // namespace

double Number(const Cell& cell) {
  if (const auto* whole = std::get_if<uint64_t>(&cell)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  return 0;
}

bool Less(const Cell& a, const Cell& b) {
  const int rank_a = Rank(a);
  const int rank_b = Rank(b);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (rank_a == 1) return std::get<std::string>(a) < std::get<std::string>(b);
  if (rank_a == 2) return false;
  const auto* whole_a = std::get_if<uint64_t>(&a);
  const auto* whole_b = std::get_if<uint64_t>(&b);
  if (whole_a != nullptr && whole_b != nullptr) return *whole_a < *whole_b;
  return Number(a) < Number(b);
}

size_t Table::Find(const std::string& key) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.key == key; });
  return static_cast<size_t>(found - columns.begin());
}

TableRow& Table::AddRow(std::vector<Cell> cells, int indent) {
  if (groups.empty()) groups.emplace_back();
  return groups.back().rows.emplace_back(TableRow{std::move(cells), indent});
}

void Table::Sort(size_t column, bool descending) {
  for (RowGroup& group : groups) {
    std::stable_sort(group.rows.begin(), group.rows.end(),
                     [&](const TableRow& a, const TableRow& b) {
                       return Before(At(a.cells, column), At(b.cells, column), descending);
                     });
  }
  std::stable_sort(groups.begin(), groups.end(), [&](const RowGroup& a, const RowGroup& b) {
    return Before(At(a.heading, column), At(b.heading, column), descending);
  });
}

void Table::RemoveColumn(size_t column) {
  const auto remove = [column](auto& from) {
    if (column < from.size()) from.erase(from.begin() + static_cast<ptrdiff_t>(column));
  };
  remove(columns);
  for (RowGroup& group : groups) {
    remove(group.heading);
    for (TableRow& row : group.rows) remove(row.cells);
  }
  for (Footer& footer : footers) remove(footer.cells);
}

void Table::Limit(size_t rows) {
  if (rows == 0) return;
  for (RowGroup& group : groups) {
    if (group.rows.size() <= rows) continue;
    group.left_out += group.rows.size() - rows;
    group.rows.resize(rows);
  }
}

}  // namespace xenoscope::report
