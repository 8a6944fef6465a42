// What columns and figures mean, a line each: for --help-columns and the tips of HTML reports.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xenoscope::report {

struct ColumnHelp {
  std::string_view key;  // as in --by, CSV and JSON
  std::string_view about;
};

// The columns of one kind of table; two kinds can have columns of one name that mean different
// things.
struct TableHelp {
  std::string_view key;    // in the data of pages
  std::string_view where;  // which tables these are; empty: the profile
  std::span<const ColumnHelp> columns;
};

std::span<const TableHelp> AllColumnHelp();
// Of one column of one kind of table; empty: there is no such column.
std::string_view HelpOf(std::string_view table, std::string_view column);
// A line each, for a terminal.
std::string ColumnHelpText();

}  // namespace xenoscope::report
