// Writes a table as comma-separated values after RFC 4180: a line of the columns' keys, then a line
// for each row; fields with a comma, a quote or a line break in quotes, quotes doubled, lines ended
// by CR LF. Numbers are plain: shares are fractions of 1, hex columns have 0x. Headings and footers
// are not written. Words that begin with =, +, -, @, tab or CR, which spreadsheets take for
// formulas, are in quotes behind a ' (a guest may choose its name), but for "-" alone.
#pragma once

#include <string>

#include "report/table/table.h"

namespace xenoscope::report {

std::string ToCsv(const Table& table);

}  // namespace xenoscope::report
