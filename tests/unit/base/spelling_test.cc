#include "base/spelling.h"

#include <gtest/gtest.h>

#include <string_view>

namespace xenoscope {
namespace {

TEST(SpellingHint, SuggestsNearestName) {
  constexpr std::string_view kNames[] = {"summary", "dump", "timeline", "report", "record"};
  struct Case {
    std::string_view word;
    std::string_view hint;
  };
  for (const Case& c : {
           Case{"sumary", "; did you mean summary?"},    // a letter left out
           Case{"summmary", "; did you mean summary?"},  // one too many
           Case{"dunp", "; did you mean dump?"},         // another one
           Case{"reprot", "; did you mean report?"},     // two swapped
           Case{"time", "; did you mean timeline?"},     // its beginning
           Case{"rec", "; did you mean record?"},
           Case{"frobnicate", ""},
           Case{"x", ""},
           Case{"", ""},
       }) {
    EXPECT_EQ(SpellingHint(c.word, kNames), c.hint) << c.word;
  }
}

}  // namespace
}  // namespace xenoscope
