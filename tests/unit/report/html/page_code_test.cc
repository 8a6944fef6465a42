// Tests which code a page has, and that its size is bounded.
#include "report/html/page_code.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::report {
namespace {

using nlohmann::ordered_json;

AnnotatedFunction Function(size_t lines, const std::string& code) {
  AnnotatedFunction function;
  function.image = "web";
  function.function = "serve";
  function.exits = {"guest", "VMEXIT_CPUID"};
  CodeBlock& block = function.blocks.emplace_back();
  block.title = "web.c";
  for (size_t i = 0; i < lines; ++i) block.lines.push_back({std::to_string(i), code, 0, {0, 0}});
  return function;
}
void Sample(size_t line, AnnotatedFunction& function) {
  CodeLine& sampled = function.blocks.front().lines.at(line);
  sampled.samples = 3;
  sampled.by_exit = {1, 2};
}

TEST(PageCode, HasEachLineOfAFunction) {
  AnnotatedFunction function = Function(3, "work();");
  Sample(1, function);
  PageCode code;
  code.Add("shop", function);
  ASSERT_EQ(code.ToJson().size(), 1U);
  const ordered_json& shown = code.ToJson()[0];
  EXPECT_EQ(shown["domain"], "shop");
  EXPECT_EQ(shown["exits"], (ordered_json{"guest", "VMEXIT_CPUID"}));
  const ordered_json none = ordered_json::array();
  EXPECT_EQ(shown["lines"], (ordered_json{{"0", "work();", 0.0, none},
                                          {"1", "work();", 3.0, {1.0, 2.0}},
                                          {"2", "work();", 0.0, none}}));
}

TEST(PageCode, HasTheLinesNearSamplesOfALongFunction) {
  AnnotatedFunction function = Function(PageCode::kLongFunction + 1, "work();");
  for (const size_t line : {size_t{5}, size_t{300}}) Sample(line, function);
  PageCode code;
  code.Add("shop", function);
  // Before and after them: from 0 to 15, a gap, from 290 to 310, a gap.
  EXPECT_EQ(code.ToJson()[0]["lines"].size(), 16 + 1 + 21 + 1);
  EXPECT_EQ(code.ToJson()[0]["lines"][16][1], "…");
}

TEST(PageCode, LeavesOutAddressesAlone) {
  PageCode code;
  code.Add("shop", Function(3, ""));
  EXPECT_TRUE(code.ToJson().empty());
}

TEST(PageCode, HasRoomForSoMuchCode) {
  PageCode code;
  const AnnotatedFunction function = Function(100, std::string(100, 'x'));
  size_t functions = 0;
  for (; code.HasRoom(); ++functions) code.Add("shop", function);
  EXPECT_GE(functions * 100 * 100, PageCode::kMaxBytes * 9 / 10);
  EXPECT_LE(functions * 100 * 100, PageCode::kMaxBytes * 11 / 10);
  PageCode small;
  for (functions = 0; small.HasRoom(); ++functions) small.Add("shop", Function(1, "x"));
  EXPECT_EQ(functions, PageCode::kMaxFunctions);
}

}  // namespace
}  // namespace xenoscope::report
