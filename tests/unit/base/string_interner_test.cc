#include "base/string_interner.h"

#include <gtest/gtest.h>

namespace xenoscope {
namespace {

TEST(StringInternerTest, NumbersTextsInTheOrderInWhichTheyCome) {
  StringInterner texts;
  EXPECT_EQ(texts.Find("0"), std::nullopt);
  // More than once around: the table grows while it has texts.
  constexpr uint32_t kTexts = 10'000;
  for (uint32_t i = 0; i < kTexts; ++i) EXPECT_EQ(texts.Intern(std::to_string(i)), i);
  EXPECT_EQ(texts.Intern(""), kTexts);
  for (uint32_t i = 0; i < kTexts; ++i) {
    EXPECT_EQ(texts.Intern(std::to_string(i)), i);
    EXPECT_EQ(texts.Find(std::to_string(i)), i);
    EXPECT_EQ(texts.all()[i], std::to_string(i));
  }
  EXPECT_EQ(texts.Find(""), kTexts);
  EXPECT_EQ(texts.Find("none"), std::nullopt);
  EXPECT_EQ(texts.all().size(), kTexts + 1);
}

}  // namespace
}  // namespace xenoscope
