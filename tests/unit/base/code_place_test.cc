// The names of places in programs' files: read as they are written, and nothing else is one.
#include "base/code_place.h"

#include <gtest/gtest.h>

#include <string>

namespace xenoscope {
namespace {

TEST(CodePlaceTest, IsReadAsItIsWritten) {
  for (const CodePlace& place : {CodePlace{"8f3a00", 0x1234}, CodePlace{"0", 0},
                                 CodePlace{std::string(128, 'f'), ~uint64_t{0}}}) {
    EXPECT_EQ(ParseCodePlace(ToString(place)), place) << ToString(place);
  }
  EXPECT_EQ(ToString(CodePlace{"8f3a00", 0x1234}), "[8f3a00+0x1234]");
}

TEST(CodePlaceTest, IsNoOtherText) {
  for (const std::string& text :
       {std::string(), std::string("["), std::string("]"), std::string("[]"), std::string("[gap]"),
        std::string("[no symbols]"), std::string("[+0x1]"), std::string("[8f+0x]"),
        std::string("[8f+0x1"), std::string("8f+0x1]"), std::string("[8F+0x1]"),
        std::string("[8g+0x1]"), std::string("[8f+0x-1]"), std::string("[8f+0x1 ]"),
        std::string("[8f+0x10000000000000000]"), '[' + std::string(129, 'f') + "+0x1]"}) {
    EXPECT_FALSE(ParseCodePlace(text)) << text;
  }
}

}  // namespace
}  // namespace xenoscope
