// A page of annotated code: names of functions and sources never become markup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/profile/annotate_view.h"

namespace xenoscope::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AnnotateHtml, HasCodeAndSamplesAndEscapesInput) {
  AnnotatedFunction function;
  function.domain = "<script>alert(1)</script> (d3)";
  function.image = "gw";
  function.function = "Map<int, char>::Find(int) const";
  function.samples = 40;
  function.share = 0.25;
  function.exits = {"VMEXIT_HLT", "\"><b>"};
  function.blocks = {{"a&b.c", {{"12", "if (a < b && c > d) f(\"</td>\");", 30, {10, 20}, {}}}}};
  function.blocks[0].lines[0].inlined = {{"g<T> (g.h:3)", 30}};
  function.cautions = {"<i>"};
  const std::string page = AnnotateHtml({function});
  EXPECT_THAT(page, HasSubstr("<td>75.00%</td><td>30</td><td>10</td><td>20</td><td>12</td>"));
  EXPECT_THAT(page, HasSubstr("if (a &lt; b &amp;&amp; c &gt; d) f(&quot;&lt;/td&gt;&quot;);"));
  EXPECT_THAT(page, HasSubstr("in inlined g&lt;T&gt; (g.h:3)"));
  EXPECT_THAT(page, HasSubstr("Map&lt;int, char&gt;::Find(int) const"));
  for (const char* markup : {"<script", "<b>", "<i>", "\"></", "<int"}) {
    EXPECT_THAT(page, Not(HasSubstr(markup)));
  }
}

TEST(AnnotateHtml, IsSelfContained) {
  const std::string page = AnnotateHtml({});
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  for (const char* other : {"http:", "https:", "src=", "href="}) {
    EXPECT_THAT(page, Not(HasSubstr(other)));
  }
}

}  // namespace
}  // namespace xenoscope::report
