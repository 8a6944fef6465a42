// Makes text safe for a terminal. Names come from guests, files and other users, and a terminal
// must never obey them. All output to a terminal goes through ForTerminal. It removes everything
// that controls a terminal, except the styles of Styled, which other text cannot forge.
#pragma once

#include <string>
#include <string_view>

namespace xenoscope::report {

// The parameters of Select Graphic Rendition (ECMA-48, 8.3.117).
inline constexpr std::string_view kBold = "1";
inline constexpr std::string_view kFaint = "2";
inline constexpr std::string_view kRed = "31";

// Returns the text between two marks. ForTerminal turns the marks into the beginning and the end of
// the style. A mark holds a random number of this process, so that text from outside cannot guess
// it.
std::string Styled(std::string_view text, std::string_view rendition);

// Returns valid UTF-8 without control characters, except '\n' and '\t', and without characters that
// change the direction of text. Each other byte becomes '?'. Marks of Styled become the terminal's
// sequences.
std::string ForTerminal(std::string_view text);

}  // namespace xenoscope::report
