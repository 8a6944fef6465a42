// Prints a table in the format that the user asked for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "report/table/table.h"

namespace xenoscope::cli {

// Writes the table to stdout as text, csv or json (`format`). Errors: those of WriteStdout.
absl::Status ShowTable(const report::Table& table, const std::string& format);

}  // namespace xenoscope::cli
