// The names of a profile's columns, as in --by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/row_key.h"

namespace xenoscope::report {

// Returns the dimension's name: "exit".
std::string_view ToString(correlate::Dimension dimension);
// Parses names of dimensions that are separated by commas, as in --by. Errors (InvalidArgument): an
// unknown name; a name twice.
absl::StatusOr<std::vector<correlate::Dimension>> ParseDimensions(const std::string& names);
// Returns the names of all dimensions in the order in which --help-columns describes them.
std::vector<std::string> DimensionNames();
// Returns the names of those that mean the same in different recordings: all but addresses.
std::vector<std::string> ComparableDimensionNames();

}  // namespace xenoscope::report
