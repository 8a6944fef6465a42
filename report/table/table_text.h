// Writes a table for people: aligned, with numbers to the right, within the width of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/table/table.h"

namespace xenoscope::report {

// How text is laid out.
struct TextStyle {
  size_t width = 0;            // the columns of the terminal; 0: no limit
  bool colour = false;         // titles and headings are bold, large shares are red
  bool figures_first = false;  // numbers are left of the words, as in opreport and perf
};

// Returns the table as text. Each line ends with '\n' and has no trailing spaces. If a line with
// words of 32 columns does not fit, columns of figures are dropped, then intervals are folded, as
// their Column::narrow says. Words are then shortened, the widest column first, until a line fits;
// no word is wider than 500 columns. Numbers are never shortened. Characters that are not printable
// become '?', as names come from guests.
std::string ToText(const Table& table, const TextStyle& style);

// Returns one cell as ToText shows it, without padding. `fraction`: a kCount has one decimal.
std::string CellText(const Cell& cell, ColumnUnit unit, bool fraction = false);

// The same for a fraction of 1, and for a number of things.
std::string Percent(double share);
std::string Count(uint64_t count);

// Returns the number of terminal columns that the UTF-8 text takes. Each code point counts as one.
size_t DisplayWidth(std::string_view text);

// Returns the text in at most `width` columns. An ellipsis marks what was left out.
std::string Shortened(std::string_view text, size_t width, Shorten how);

}  // namespace xenoscope::report
