// Words of guests and users, made safe for formats that must be valid text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xenoscope::report {

// The bytes of the printable character that begins at byte `at`; 0 where none does: what is no
// valid UTF-8, control characters, those that change the direction of text (a name could look like
// another one, or like what surrounds it), and those that XML excludes.
size_t PrintableAt(std::string_view text, size_t at);

// Valid UTF-8: each byte that is of no printable character becomes '?'.
std::string Printable(std::string_view text);

// For text and quoted attributes of XML, SVG and HTML.
std::string Escaped(std::string_view text);

}  // namespace xenoscope::report
