#include "sampler/ftrace/function_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;

TEST(FunctionPatterns, AreNamesInWhichAStarStandsForAnything) {
  EXPECT_TRUE(CheckFunctionPatterns({}).ok());
  EXPECT_TRUE(
      CheckFunctionPatterns({"acpi_*", "*_probe", "x64_sys_*read", "foo.constprop.0"}).ok());
}

TEST(FunctionPatterns, OthersAreRefused) {
  struct {
    std::vector<std::string> patterns;
    const char* why;
  } const kCases[] = {
      {{"acpi_*", ""}, "name some"},
      {{"*"}, "would trace all functions"},
      {{"*.*"}, "would trace all functions"},
      {{"a b"}, "is no pattern"},    // two of them
      {{"a\n!b"}, "is no pattern"},  // a command of ftrace
      {{"schedule:traceoff"}, "is no pattern"},
      {{"!acpi_*"}, "is no pattern"},
      {{"../x"}, "is no pattern"},
      {{std::string(kMaxFunctionPatternBytes + 1, 'a')}, "is no pattern"},
      {std::vector<std::string>(kMaxFunctionPatterns + 1, "a"), "too many"},
  };
  for (const auto& [patterns, why] : kCases) {
    EXPECT_THAT(std::string(CheckFunctionPatterns(patterns).message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace xenoscope::sampler
