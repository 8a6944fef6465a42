// Writes a table as comma-separated values (RFC 4180): a line of the columns' keys, then a line for
// each row. Fields with a comma, a quote or a line break are quoted; quotes are doubled; lines end
// with CR LF. Numbers are plain: shares are fractions of 1, hex columns have 0x. Headings and
// footers are not written.
//
// Spreadsheets take words that begin with =, +, -, @, tab or CR for formulas, and a guest may
// choose its name. Such words are quoted and have a ' before them, except "-" alone.
#pragma once

#include <string>

#include "report/table/table.h"

namespace xenoscope::report {

std::string ToCsv(const Table& table);

}  // namespace xenoscope::report
