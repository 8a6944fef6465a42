// Where the names of samples come from, and what is missing: what `report --origins` prints.
#pragma once

#include <string>
#include <vector>

#include "base/mode.h"
#include "report/table/table.h"

namespace xenoscope::report {

struct OriginRow {
  std::string domain;
  Mode mode = Mode::kUser;
  std::string image;
  double samples = 0;
  double share = 0;       // of all samples
  std::string functions;  // a file; empty: none
  std::string lines;      // a file; empty: none
  std::string build_id;   // hexadecimal; empty: not known
  std::string missing;    // why something is, and what would help
};

// Most samples first, and under the table how many of all have a function, and a line.
Table OriginsTable(std::vector<OriginRow> rows);

}  // namespace xenoscope::report
