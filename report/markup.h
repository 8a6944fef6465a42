// Makes words of guests and users safe for formats that must be valid text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xenoscope::report {

// Returns the number of bytes of the printable character that begins at byte `at`; 0 when no such
// character begins there. Not printable are: bytes that are no valid UTF-8; control characters;
// characters that change the direction of text, as a name could look like another name or like the
// text around it; and characters that XML excludes.
size_t PrintableAt(std::string_view text, size_t at);

// Returns valid UTF-8. Each byte that is not part of a printable character becomes '?'.
std::string Printable(std::string_view text);

// Returns text that is safe in elements and quoted attributes of XML, SVG and HTML.
std::string Escaped(std::string_view text);

}  // namespace xenoscope::report
