// The words of a row: what it is of, in the order of its profile's columns.
#pragma once

#include <string>
#include <vector>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Rows of different profiles with the same words are of the same thing. O(columns).
[[nodiscard]] std::vector<std::string> RowWords(const ProfileReport& profile,
                                                const correlate::ProfileRow& row);

}  // namespace xenoscope::report
