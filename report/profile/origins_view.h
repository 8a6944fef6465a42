// The symbol files of samples, and what is missing: the output of `report --origins`.
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
  double share = 0;       // part of all samples
  std::string functions;  // file with the functions; empty: none
  std::string lines;      // file with the lines; empty: none
  std::string build_id;   // hexadecimal; empty: not known
  std::string missing;    // missing information, and how to supply it
};

// Returns the rows, most samples first; footers count the samples with a function and those with a
// line.
Table OriginsTable(std::vector<OriginRow> rows);

}  // namespace xenoscope::report
