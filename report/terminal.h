// What standard output can show.
#pragma once

#include "report/table_text.h"

namespace xenoscope::report {

// On a terminal its width, and colours unless NO_COLOR (https://no-color.org) or TERM=dumb says
// otherwise; elsewhere neither a width nor colours. COLUMNS, when set, is the width everywhere.
TextStyle StdoutStyle();

// The rows of the terminal; LINES, when set, everywhere, and 24 where nothing is known.
size_t StdoutRows();

}  // namespace xenoscope::report
