// Writes a table's rows as JSON: an array of objects whose keys are in the order of the columns.
// Numbers are plain: shares are fractions of 1, cycles are whole. Hex columns are strings, empty
// cells are null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/table/table.h"

namespace xenoscope::report {

nlohmann::ordered_json ToJson(const Table& table);

// Returns the document as text that ends with a newline. Bytes that are not UTF-8 become U+FFFD, as
// names come from guests.
std::string Dump(const nlohmann::ordered_json& document);

}  // namespace xenoscope::report
