// What the columns of a profile mean, a line each: for --help-columns and the tips of HTML reports.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xenoscope::report {

struct ColumnWords {
  std::string_view key;  // as in --by, CSV and JSON
  std::string_view about;
};

std::span<const ColumnWords> AllColumnWords();
// A line each, for a terminal.
std::string ColumnWordsText();

}  // namespace xenoscope::report
