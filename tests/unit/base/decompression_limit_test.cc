#include "base/decompression_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/error.h"

namespace xenoscope {
namespace {

using testing::HasSubstr;

TEST(DecompressionLimit, SmallFilesShareABudget) {
  EXPECT_EQ(*DecompressionLimit(0), kDecompressionBudgetBytes);
  EXPECT_EQ(*DecompressionLimit(1000), kDecompressionBudgetBytes + 200'000);
  {
    const DecompressionBudget usual(1000, 8000);
    EXPECT_EQ(*DecompressionLimit(0), kDecompressionBudgetBytes);
    DecompressionBudget odd(1000, 200'000 + kDecompressionBudgetBytes - 10);
    EXPECT_EQ(*DecompressionLimit(0), 10U);
    const DecompressionBudget moved = std::move(odd);
    EXPECT_EQ(*DecompressionLimit(0), 10U);
    const DecompressionBudget last(0, 10);
    EXPECT_EQ(*DecompressionLimit(0), 0U);
    EXPECT_EQ(*DecompressionLimit(1000), 200'000U);
  }
  EXPECT_EQ(*DecompressionLimit(0), kDecompressionBudgetBytes);
}

TEST(DecompressionLimit, EnvironmentOverridesLimit) {
  struct Case {
    const char* text;
    uint64_t limit;  // 0: refused
  };
  constexpr Case kCases[] = {
      {"", kDecompressionBudgetBytes},
      {"12345", 12345},
      {"500M", uint64_t{500} << 20},
      {"100G", uint64_t{100} << 30},
      {"2T", uint64_t{2} << 40},
      {"100GB", 0},
      {"100x", 0},
      {"-1", 0},
      {"much", 0},
      {"99999999999T", 0},
  };
  for (const Case& c : kCases) {
    setenv("XENOSCOPE_MAX_UNPACKED", c.text, 1);
    const absl::StatusOr<uint64_t> limit = DecompressionLimit(0);
    unsetenv("XENOSCOPE_MAX_UNPACKED");
    if (c.limit != 0) {
      ASSERT_TRUE(limit.ok()) << c.text << ": " << limit.status();
      EXPECT_EQ(*limit, c.limit) << c.text;
    } else {
      EXPECT_THAT(std::string(Message(limit.status())), HasSubstr("is not a size")) << c.text;
    }
  }
}

}  // namespace
}  // namespace xenoscope
