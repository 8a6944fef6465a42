// What may reach a terminal. Names come from guests, files and other users: a terminal must never
// obey them. So all output to one goes through ForTerminal, which lets nothing through that
// controls a terminal, but for the styles that Styled gave, which nobody else can.
#pragma once

#include <string>
#include <string_view>

namespace xenoscope::report {

// Parameters of Select Graphic Rendition (ECMA-48, 8.3.117).
inline constexpr std::string_view kBold = "1";
inline constexpr std::string_view kFaint = "2";
inline constexpr std::string_view kRed = "31";

// The text between marks that ForTerminal makes the beginning and the end of the style. They hold a
// random number of this process, so that no text from outside has one by guess.
std::string Styled(std::string_view text, std::string_view rendition);

// Valid UTF-8 without control characters, but for '\n' and '\t', and without those that change the
// direction of text: what is neither becomes '?'. Marks of Styled become the terminal's sequences.
std::string ForTerminal(std::string_view text);

}  // namespace xenoscope::report
