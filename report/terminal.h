// What standard output and standard error can show.
#pragma once

#include "report/table/table_text.h"

namespace xenoscope::report {

// On a terminal its width, and colours unless NO_COLOR (https://no-color.org) or TERM=dumb says
// otherwise; elsewhere neither a width nor colours. COLUMNS, when set, is the width everywhere.
TextStyle StdoutStyle();

// The rows of the terminal; LINES, when set, everywhere, and 24 where nothing is known.
size_t StdoutRows();

// The columns of the terminal that standard error is; 80 where nothing is known. At least 1.
size_t StderrColumns();

}  // namespace xenoscope::report
