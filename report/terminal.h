// Finds what standard output and standard error can show.
#pragma once

#include "report/table/table_text.h"

namespace xenoscope::report {

// Returns the style for standard output. A terminal has its width, and colours unless NO_COLOR
// (https://no-color.org) or TERM=dumb forbids them. Other outputs have neither a width nor colours.
// COLUMNS, when set, is the width of every output.
TextStyle StdoutStyle();

// Returns the rows of the terminal; 24 when they are unknown. LINES, when set, overrides both.
size_t StdoutRows();

// Returns the columns of the terminal of standard error; 80 when they are unknown. At least 1.
size_t StderrColumns();

}  // namespace xenoscope::report
