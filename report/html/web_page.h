// The page of HTML reports: report/html/web, bundled when the command was built.
#pragma once

#include <string_view>

namespace xenoscope::report {

// One HTML file with @@XENOSCOPE_DATA@@ where the data belongs; empty when the command was built
// without npm.
std::string_view WebPage();

}  // namespace xenoscope::report
