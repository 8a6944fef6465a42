#include "report/table/table_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/json_text.h"

namespace xenoscope::report {
namespace {

nlohmann::ordered_json ValueOf(const Cell& cell, ColumnUnit unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<uint64_t>(&cell)) {
    if (unit == ColumnUnit::kHex) return fmt::format("0x{:x}", *whole);
    return *whole;
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    if (unit == ColumnUnit::kCycles) return std::llround(*real);
    return *real;
  }
  return nullptr;
}

}  // namespace

nlohmann::ordered_json ToJson(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const RowGroup& group : table.groups) {
    for (const TableRow& row : group.rows) {
      auto object = nlohmann::ordered_json::object();
      for (size_t i = 0; i < table.columns.size() && i < row.cells.size(); ++i) {
        object[table.columns[i].key] = ValueOf(row.cells[i], table.columns[i].unit);
      }
      rows.push_back(std::move(object));
    }
  }
  return rows;
}

std::string Dump(const nlohmann::ordered_json& document) { return JsonText(document, 2) + "\n"; }

}  // namespace xenoscope::report
