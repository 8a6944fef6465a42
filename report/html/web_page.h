// The page of HTML reports: report/html/web, bundled when the command was built.
#pragma once

#include <string_view>

namespace xenoscope::report {

// Returns an HTML file with @@XENOSCOPE_DATA@@ in the place of the data; empty if the command was
// built without npm.
std::string_view WebPage();

}  // namespace xenoscope::report
