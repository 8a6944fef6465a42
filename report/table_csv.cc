#include "report/table_csv.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

namespace xenoscope::report {
namespace {

std::string Field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char byte : text) {
    if (byte == '"') out += '"';
    out += byte;
  }
  return out + '"';
}

std::string FieldOf(const Cell& cell, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return Field(*text);
  if (const auto* whole = std::get_if<uint64_t>(&cell)) {
    return unit == Unit::kHex ? fmt::format("0x{:x}", *whole) : fmt::format("{}", *whole);
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    return unit == Unit::kCycles ? fmt::format("{:.0f}", *real) : fmt::format("{:.9g}", *real);
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
  for (const Group& group : table.groups) {
    for (const Row& row : group.rows) {
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
