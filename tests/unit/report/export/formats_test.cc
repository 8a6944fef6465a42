// Tests the formats for other programs with a small profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/export/flame_lines.h"
#include "report/export/flame_svg.h"
#include "report/export/folded.h"
#include "report/export/profile_xml.h"
#include "report/html/page.h"
#include "report/html/web_page.h"
#include "report/markup.h"
#include "report/profile/column_help.h"
#include "report/profile/profile_format.h"
#include "report/table/cumulative_rounder.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using Kind = correlate::StackFrame::Kind;
using correlate::ProfileRow;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A profile of hash(), which main() calls, in a domain whose name is markup, and of the work of Xen
// for both.
class Formats : public testing::Test {
 protected:
  Formats() {
    report_.by = {Dimension::kDomain, Dimension::kMode, Dimension::kStack};
    report_.domain_name = [](DomainId) { return "<web>;"; };
    report_.function_of = [this](FunctionId id) -> const Function& { return functions_[id.value]; };
    report_.result.stacks = {{{FunctionId{1}, Mode::kUser}, {FunctionId{0}, Mode::kUser}},
                             {{FunctionId{2}, Mode::kXen}, {FunctionId{0}, Mode::kUser}}};
    Add(0, Mode::kUser, 2.6);
    Add(1, Mode::kXen, 1.3);
    Add(1, Mode::kXen, 0.3);
    Add(0, Mode::kXen, -0.2);
  }
  void Add(uint32_t stack, Mode mode, double samples) {
    ProfileRow row;
    row.domain = {1};
    row.mode = mode;
    row.stack = stack;
    row.samples = samples;
    row.cycles = samples * 1000;
    report_.result.rows.push_back(row);
  }
  std::string Folded(FlameWeight weight) { return ToFolded(FlameLines(report_, {}, weight)); }

  std::vector<Function> functions_ = {
      {"web", "main", ""}, {"web", "hash", ""}, {"xen", "do_x", ""}};
  ProfileReport report_;
};

TEST_F(Formats, FoldedStacksBeginWithDomainAndMode) {
  EXPECT_EQ(Folded(FlameWeight::kCycles),
            "<web>:;[user];main;hash 2400\n"
            "<web>:;[xen];main;do_x 1600\n");
}

TEST_F(Formats, InlinedFunctionsAreMarkedFrames) {
  report_.result.inlined = {"mix"};
  report_.result.stacks[0].insert(report_.result.stacks[0].begin(),
                                  {FunctionId{1}, Mode::kUser, 0, Kind::kInlined, 0});
  EXPECT_EQ(Folded(FlameWeight::kCycles),
            "<web>:;[user];main;hash;mix (inlined) 2400\n"
            "<web>:;[xen];main;do_x 1600\n");
}

// What Xen did for a guest is told apart by the exits that it handled, in every format with stacks.
TEST_F(Formats, ExitsAreRootsOfXensFrames) {
  correlate::Context cpuid{correlate::ContextKind::kExit};
  correlate::Context leaf;
  leaf.exit_kind = correlate::ExitKind::kCpuid;
  leaf.number = 1;
  report_.exit_name = [](uint32_t) { return "VMEXIT_CPUID"; };
  report_.result.exits = {cpuid, leaf};
  report_.result.stacks[1] = {{FunctionId{2}, Mode::kXen},
                              {{}, Mode::kXen, 0, Kind::kSubreason, 1},
                              {{}, Mode::kXen, 0, Kind::kExit, 0}};
  EXPECT_EQ(Folded(FlameWeight::kCycles),
            "<web>:;[user];main;hash 2400\n"
            "<web>:;[xen];VMEXIT_CPUID;cpuid leaf 0x1;do_x 1600\n");
  // A column has them already.
  report_.by = {Dimension::kExit, Dimension::kStack};
  for (ProfileRow& row : report_.result.rows) row.exit = cpuid;
  EXPECT_EQ(Folded(FlameWeight::kCycles),
            "VMEXIT_CPUID;cpuid leaf 0x1;do_x 1600\n"
            "VMEXIT_CPUID;main;hash 2400\n");
}

TEST_F(Formats, RoundedWeightsPreserveSum) {
  EXPECT_EQ(Folded(FlameWeight::kSamples),
            "<web>:;[user];main;hash 2\n"
            "<web>:;[xen];main;do_x 2\n");
  CumulativeRounder thirds;
  EXPECT_THAT((std::vector{thirds.Next(1.0 / 3), thirds.Next(1.0 / 3), thirds.Next(1.0 / 3)}),
              ElementsAre(0, 1, 0));
}

TEST_F(Formats, SvgEscapesNames) {
  const std::string svg =
      ToFlameSvg(FlameLines(report_, {}, FlameWeight::kCycles), FlameWeight::kCycles, "a & b");
  EXPECT_THAT(svg, HasSubstr("<title>all: 4000 cycles (100.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;web&gt;;: 4000 cycles (100.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, Not(HasSubstr("<web>")));
}

TEST_F(Formats, XmlHasBinariesInDomains) {
  report_.by = {Dimension::kDomain, Dimension::kMode, Dimension::kImage, Dimension::kFunction};
  report_.result.rows.resize(1);
  report_.result.rows[0].image = "web";
  report_.result.rows[0].function = "operator<";
  const std::string xml = ProfileXml(report_, {});
  EXPECT_THAT(xml, HasSubstr("<domain id=\"1\" name=\"&lt;web&gt;;\">"));
  EXPECT_THAT(xml, HasSubstr("  <binary name=\"web\">"));
  EXPECT_THAT(xml, HasSubstr("<symbol mode=\"user\" name=\"operator&lt;\">"));
}

TEST(Markup, ReplacesInvalidCharacters) {
  EXPECT_EQ(Printable("a\nb\x7f"), "a?b?");
  EXPECT_EQ(Printable("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("\xc3"), "?");            // a character that is cut off
  EXPECT_EQ(Printable("\xc0\xaf"), "??");       // an overlong '/'
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");  // a surrogate
  EXPECT_EQ(Printable("\xef\xbf\xbf"), "???");  // U+FFFF, which XML excludes
  EXPECT_EQ(Printable("\xc2\x85"), "??");       // a control character
  // NOLINTNEXTLINE(misc-misleading-bidirectional): what is to be made harmless
  EXPECT_EQ(Printable("\xe2\x80\xae"), "???");
  EXPECT_EQ(Escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
}

TEST(ProfileFormats, StackFormatsReplaceFunctionColumn) {
  const std::vector<Dimension> by = {Dimension::kExit, Dimension::kFunction};
  EXPECT_EQ(ColumnsFor(*FindProfileFormat("csv"), by), by);
  EXPECT_THAT(ColumnsFor(*FindProfileFormat("folded"), by),
              ElementsAre(Dimension::kExit, Dimension::kStack));
  EXPECT_THAT(ColumnsFor(*FindProfileFormat("pprof"), by),
              ElementsAre(Dimension::kExit, Dimension::kStack, Dimension::kDomain,
                          Dimension::kProcess, Dimension::kAddress));
  EXPECT_EQ(FindProfileFormat("pdf"), nullptr);
}

// JSON in a page cannot end its element, and readers get the original text.
TEST(Page, EscapesScriptEnd) {
  const std::string text = "</script><!-- & \xff";
  const absl::StatusOr<std::string> page = ToPage({{"name", text}});
  if (WebPage().empty()) {
    EXPECT_THAT(std::string(page.status().message()), HasSubstr("without npm"));
    return;
  }
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, Not(HasSubstr(text.substr(0, 12))));
  const size_t begin = page->find("{\"name\":");
  ASSERT_NE(begin, std::string::npos);
  const auto read = nlohmann::json::parse(page->substr(begin, page->find('}', begin) + 1 - begin));
  EXPECT_EQ(read["name"], "</script><!-- & \xef\xbf\xbd");
}

TEST(ColumnHelp, EveryColumnHasHelp) {
  for (const TableHelp& table : AllColumnHelp()) {
    for (const ColumnHelp& column : table.columns) EXPECT_FALSE(column.about.empty());
  }
  const TableHelp& profile = AllColumnHelp().front();
  std::vector<std::string_view> keys;
  for (const ColumnHelp& column : profile.columns) keys.push_back(column.key);
  for (const char* figure : {"samples", "share", "low", "high", "cycles"}) {
    EXPECT_THAT(keys, testing::Contains(figure));
  }
  for (size_t i = 0; i < correlate::kDimensions; ++i) {
    EXPECT_THAT(keys, testing::Contains(ToString(static_cast<Dimension>(i))));
  }
}

}  // namespace
}  // namespace xenoscope::report
