// Keys that come in nearly the same order again.
#include "store/same_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace xenoscope::store {
namespace {

TEST(SameOrderTest, AsksOnlyForKeysThatAreNew) {
  SameOrder<int> numbers;
  std::string asked;
  const auto pass = [&](const std::string& keys) {
    std::string found;
    for (const char key : keys) {
      found += static_cast<char>(numbers.NumberOf(key, [&](int each) {
        asked += static_cast<char>(each);
        return static_cast<uint32_t>(each) + 1;
      }));
    }
    numbers.Restart();
    return found;
  };
  EXPECT_EQ(pass("acegac"), "bdfhbd");
  EXPECT_EQ(asked, "acegac");
  asked.clear();
  EXPECT_EQ(pass("acegac"), "bdfhbd");
  EXPECT_EQ(pass("abegac"), "bcfhbd");  // another one
  EXPECT_EQ(pass("gac"), "hbd");        // some are gone
  EXPECT_EQ(pass("dgac"), "ehbd");      // one more
  EXPECT_EQ(asked, "bd");
  numbers.Clear();
  EXPECT_EQ(pass("gac"), "hbd");
  EXPECT_EQ(asked, "bdgac");
}

}  // namespace
}  // namespace xenoscope::store
