// Words of guests and users, made safe for formats that must be valid text.
#pragma once

#include <string>
#include <string_view>

namespace xenoscope::report {

// Valid UTF-8: what is no character, and control characters, become '?'.
std::string Printable(std::string_view text);

// For text and quoted attributes of XML, SVG and HTML.
std::string Escaped(std::string_view text);

}  // namespace xenoscope::report
