// Writes a table for people: aligned, numbers to the right, within the width of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/table/table.h"

namespace xenoscope::report {

struct TextStyle {
  size_t width = 0;            // columns of the terminal; 0: no limit
  bool colour = false;         // titles and headings bold, hot shares red
  bool figures_first = false;  // numbers to the left of the words, as opreport and perf do
};

// Each line ends with '\n' and has no trailing spaces. Words are shortened, the widest column
// first, until a line fits, and to 500 columns everywhere; numbers never are. Characters in words
// that are not printable (names come from guests) are shown as '?'.
std::string ToText(const Table& table, const TextStyle& style);

// One cell as ToText shows it, unpadded. `fraction`: a kCount with one decimal.
std::string CellText(const Cell& cell, ColumnUnit unit, bool fraction = false);

// How many columns of a terminal the UTF-8 text takes, a code point counting as one.
size_t DisplayWidth(std::string_view text);

// The text in at most `width` columns, with an ellipsis where something was left out.
std::string Shortened(std::string_view text, size_t width, Shorten how);

}  // namespace xenoscope::report
