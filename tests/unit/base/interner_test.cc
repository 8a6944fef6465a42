#include "base/interner.h"

#include <gtest/gtest.h>

#include <string>

namespace xenoscope {
namespace {

TEST(Interner, AssignsIdsInOrderOfFirstUse) {
  Interner<std::string, 2> names;
  // "a" and "c" share a place, so that each drives the other out of it.
  const auto of = [&](const std::string& name) { return names.Intern(name, name == "b" ? 1 : 0); };
  EXPECT_EQ(of("c"), 0U);
  EXPECT_EQ(of("a"), 1U);
  EXPECT_EQ(of("b"), 2U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(of("a"), 1U);
    EXPECT_EQ(of("b"), 2U);
    EXPECT_EQ(of("c"), 0U);
  }
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names[1], "a");
}

TEST(Interner, ClearRestartsIds) {
  Interner<int, 4> numbers;
  for (const int key : {7, 8, 9}) numbers.Intern(key, static_cast<uint64_t>(key));
  numbers.Clear();
  EXPECT_EQ(numbers.size(), 0U);
  EXPECT_EQ(numbers.Intern(9, 9), 0U);
  EXPECT_EQ(numbers.Intern(7, 7), 1U);
}

}  // namespace
}  // namespace xenoscope
