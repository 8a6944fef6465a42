// Descriptions of columns and figures, one line each: for --help-columns and the tips of HTML
// reports.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xenoscope::report {

struct ColumnHelp {
  std::string_view key;  // as in --by, CSV and JSON
  std::string_view about;
};

// The columns of one kind of table. Columns of the same name can have different meanings in
// different kinds.
struct TableHelp {
  std::string_view key;    // name in the data of pages
  std::string_view where;  // heading in --help-columns; empty: the profile
  std::span<const ColumnHelp> columns;
};

std::span<const TableHelp> AllColumnHelp();
// Returns the description of a column of one kind of table; empty if there is no such column.
std::string_view HelpOf(std::string_view table, std::string_view column);
// Returns all descriptions, one line each, for a terminal.
std::string ColumnHelpText();

}  // namespace xenoscope::report
