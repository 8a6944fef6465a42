// Writes a profile as XML with the elements of `opreport --xml`: binaries with their symbols, each
// with its count.
#pragma once

#include <string>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Returns the XML. Binaries are inside their domains where rows are by domain. Other columns are
// attributes of symbols.
std::string ProfileXml(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
