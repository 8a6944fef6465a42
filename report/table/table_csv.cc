#include "report/table/table_csv.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

namespace xenoscope::report {
namespace {

// Whether a spreadsheet would take the words for a formula, which can run programs or send data to
// others. "-" alone, which stands for no value here, is not a formula.
bool IsFormula(std::string_view text) {
  constexpr std::string_view kBeginnings = "=+-@\t\r";
  return !text.empty() && text != "-" && kBeginnings.find(text.front()) != std::string_view::npos;
}

std::string Field(std::string_view text) {
  const bool is_formula = IsFormula(text);
  if (!is_formula && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = is_formula ? "\"'" : "\"";
  for (const char byte : text) {
    if (byte == '"') out += '"';
    out += byte;
  }
  return out + '"';
}

std::string FieldOf(const Cell& cell, ColumnUnit unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return Field(*text);
  if (const auto* whole = std::get_if<uint64_t>(&cell)) {
    return unit == ColumnUnit::kHex ? fmt::format("0x{:x}", *whole) : fmt::format("{}", *whole);
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    return unit == ColumnUnit::kCycles ? fmt::format("{:.0f}", *real)
                                       : fmt::format("{:.9g}", *real);
  }
  return "";
}

}  // namespace

std::string ToCsv(const Table& table) {
  std::string out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) out += ',';
    out += Field(table.columns[i].key);
  }
  out += "\r\n";
  for (const RowGroup& group : table.groups) {
    for (const TableRow& row : group.rows) {
      for (size_t i = 0; i < table.columns.size() && i < row.cells.size(); ++i) {
        if (i > 0) out += ',';
        out += FieldOf(row.cells[i], table.columns[i].unit);
      }
      out += "\r\n";
    }
  }
  return out;
}

}  // namespace xenoscope::report
