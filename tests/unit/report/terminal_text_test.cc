#include "report/terminal_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace xenoscope::report {
namespace {

using testing::Not;
using testing::StartsWith;

TEST(TerminalText, StripsControlSequences) {
  struct Case {
    const char* text;
    const char* shown;
  };
  constexpr Case kCases[] = {
      {"", ""},
      {"a\tb\nc\n", "a\tb\nc\n"},
      {"größe │ ▁▂▃ 日本 😀", "größe │ ▁▂▃ 日本 😀"},
      {"\x1b[31mred\x1b[0m", "?[31mred?[0m"},
      {"\x1b]52;c;cm0=\x07", "?]52;c;cm0=?"},  // writes to the clipboard
      {"100%\r  1%", "100%?  1%"},             // the text would be overwritten
      {"\x08\x7f", "??"},                      // a backspace, a delete
      {"\xc2\x9b\x31m", "??1m"},               // CSI as one character of C1
      {"\x9b\x31m", "?1m"},                    // CSI as one byte
      // NOLINTNEXTLINE(misc-misleading-bidirectional): what is to be made harmless
      {"a\xe2\x80\xae"
       "b\xe2\x81\xa6"
       "c",
       "a???b???c"},                // an override, an isolate
      {"\u200fa\u061c", "???a??"},  // direction marks
      {"\xff\xc3", "??"},           // bytes that are no UTF-8
      {"\x1b"
       "0123456789abcdef31m",
       "?0123456789abcdef31m"},  // a guessed mark
  };
  for (const Case& c : kCases) EXPECT_EQ(ForTerminal(c.text), c.shown);
}

TEST(TerminalText, EscapesStyleInText) {
  const std::string styled = Styled("hot", kRed);
  EXPECT_THAT(styled, Not(StartsWith("\x1b[")));  // the text has not gone through ForTerminal
  EXPECT_EQ(ForTerminal("a " + styled + "\n"), "a \x1b[31mhot\x1b[0m\n");
  EXPECT_EQ(ForTerminal(Styled("\x1b[2J", "38;2;0;114;178")), "\x1b[38;2;0;114;178m?[2J\x1b[0m");
  EXPECT_EQ(ForTerminal(styled.substr(0, 9)), "?" + styled.substr(1, 8));  // a mark that is cut off
}

}  // namespace
}  // namespace xenoscope::report
