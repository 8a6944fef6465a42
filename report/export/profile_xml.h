// A profile as XML, with the elements that `opreport --xml` has: binaries with their symbols, each
// with its count.
#pragma once

#include <string>

#include "report/profile/profile_view.h"

namespace xenoscope::report {

// Binaries are inside their domains where rows are by domain; further columns are attributes of
// symbols.
std::string ProfileXml(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
