// Tests which tables text shows, and the names and sums in them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "report/summary/summary_view.h"
#include "tests/unit/analysis/random_trace.h"

namespace xenoscope::report {
namespace {

using analysis::GroupLayout;
using analysis::MetricUnit;
using analysis::RowSubject;
using analysis::SectionLevel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr analysis::GroupInfo kPcpus{"utilisation", "pCPUs", SectionLevel::kTrace,
                                     GroupLayout::kTable, RowSubject::kPcpus};
constexpr analysis::GroupInfo kVcpus{"vcpus", "vCPUs", SectionLevel::kTrace, GroupLayout::kTable,
                                     RowSubject::kVcpus};
constexpr analysis::GroupInfo kDomains{"domains", "Domains", SectionLevel::kTrace,
                                       GroupLayout::kRanked, RowSubject::kDomains};

// Returns the summary of a host whose domain N ran N us, a tenth of it in Xen, and had N exits. Its
// clock is of 1 GHz.
analysis::AnalysisResult Host(uint64_t pcpus, uint16_t domains) {
  analysis::AnalysisResult result;
  result.metadata.clock = {1'000'000'000, ClockSource::kGiven};
  result.trace.pcpus = pcpus;
  analysis::Section& trace = result.document.trace;
  analysis::MetricGroup& table = trace.AddGroup(kDomains);
  trace.AddGroup(kPcpus).rows.push_back({"p0", {}, {}});
  trace.AddGroup(kVcpus).rows.push_back({"d1v0", {}, {}});
  for (uint16_t id = 1; id <= domains; ++id) {
    table.rows.push_back(analysis::MetricRow{fmt::format("d{}", id), {}, {}}
                             .Add("running", MetricUnit::kCycles, id * uint64_t{1000})
                             .Add("exits", MetricUnit::kCount, id)
                             .Add("in_xen", 0.1));
    analysis::DomainSection& domain = result.document.domains.emplace_back();
    domain.domain = DomainId{id};
    domain.vcpus.emplace_back().section.AddGroup({"exits", "Exit reasons"}).rows = {
        analysis::MetricRow{"VMEXIT_HLT", {}, {}}.Add("count", MetricUnit::kCount, 1)};
  }
  return result;
}

std::string Text(const analysis::AnalysisResult& result, const SummaryStyle& style = {}) {
  const auto names = [](DomainId domain) { return domain.value == 7 ? "web" : std::string(); };
  return SummaryText(result, names, style);
}

TEST(SummaryText, ShowsEverythingOfASmallHost) {
  EXPECT_THAT(
      Text(Host(kMostPcpusShown, kMostDomainsShown)),
      AllOf(HasSubstr("\npCPUs\n"), HasSubstr("\nvCPUs\n"), HasSubstr("\nDomain d7 (web)\n"),
            HasSubstr("\nd7v0\n"), Not(HasSubstr("Not shown")), Not(HasSubstr("more"))));
}

TEST(SummaryText, LeavesOutPcpusAndVcpusOfAWideHost) {
  for (const auto& host : {Host(kMostPcpusShown + 1, 3), Host(1, kMostDomainsShown + 1)}) {
    EXPECT_THAT(Text(host),
                AllOf(HasSubstr("\nDomains "), HasSubstr("d3 "), Not(HasSubstr("\npCPUs\n")),
                      Not(HasSubstr("\nvCPUs\n")), Not(HasSubstr("\nDomain d7")),
                      HasSubstr(" pCPUs: --pcpu\n"), HasSubstr(" vCPUs: --vcpu")));
    EXPECT_THAT(Text(host, {.text = {}, .pcpus = true}),
                AllOf(HasSubstr("\npCPUs\n"), Not(HasSubstr("\nDomain d3")),
                      Not(HasSubstr(" pCPUs: --pcpu"))));
    EXPECT_THAT(Text(host, {.text = {}, .vcpus = true}),
                AllOf(HasSubstr("\nDomain d3"), HasSubstr("\nvCPUs\n"), Not(HasSubstr("\npCPUs\n")),
                      Not(HasSubstr(" vCPUs: --vcpu"))));
    EXPECT_THAT(
        Text(host, {.text = {}, .details = true}),
        AllOf(HasSubstr("\npCPUs\n"), HasSubstr("\nDomain d3"), Not(HasSubstr("Not shown"))));
  }
}

// What text may not show need not be counted: nothing of it is missed.
TEST(SummaryText, IsTheSameWithoutWhatItMayNotShow) {
  const std::initializer_list<SummaryStyle> styles = {
      {},
      {.text = {}, .pcpus = true},
      {.text = {}, .vcpus = true},
      {.text = {}, .chosen = true, .pcpus = true, .vcpus = true},
      {.text = {}, .details = true}};
  for (const uint32_t pcpus : {4U, uint32_t{kMostPcpusShown} + 4}) {
    const analysis::RandomTrace random(1, pcpus);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto whole = analysis::AnalyseTrace(*file, {}, analysis::AllAnalyses, 1);
    ASSERT_TRUE(whole.ok()) << whole.status();
    size_t fewest = analysis::AllAnalyses().size();
    for (const SummaryStyle& style : styles) {
      const auto analyses = [&] {
        return analysis::AnalysesOf([&](const analysis::GroupInfo& group) {
          return TextMayShow(group, IsWide(*whole), style);
        });
      };
      const auto result = analysis::AnalyseTrace(*file, {}, analyses, 1);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(Text(*result, style), Text(*whole, style));
      fewest = std::min(fewest, analyses().size());
    }
    EXPECT_EQ(fewest < analysis::AllAnalyses().size(), IsWide(*whole));
  }
}

TEST(SummaryText, ShowsTheTablesOfChosenSections) {
  analysis::AnalysisResult result = Host(1, 1);
  result.document.domains[0]
      .section.AddGroup({"repeats", "Repeats others", SectionLevel::kDomain, GroupLayout::kDetail})
      .rows.push_back({"row", {}, {}});
  EXPECT_THAT(Text(result), Not(HasSubstr("Repeats others")));
  EXPECT_THAT(Text(result, {.text = {}, .chosen = true}), HasSubstr("\nRepeats others\n"));
}

TEST(SummaryText, ShowsTheLargestDomainsAndTheSumOfTheOthers) {
  const analysis::AnalysisResult host = Host(1, 32);
  const std::string text = Text(host);
  // 1 + ... + 12 = 78
  EXPECT_THAT(text, AllOf(HasSubstr("\n  d32"), HasSubstr("\n  d13"), Not(HasSubstr("\n  d12 ")),
                          HasSubstr("\n  (12 more; --all)  78.000 us     78  10.00%\n")));
  EXPECT_LT(text.find("d32"), text.find("d31"));
  EXPECT_THAT(Text(host, {.text = {.width = 36}}), HasSubstr("\n  (12 more;…  78.000 us "));
  EXPECT_THAT(Text(host, {.text = {}, .details = true}),
              AllOf(HasSubstr("\n  d7 web "), HasSubstr("\n  d1 "), Not(HasSubstr("more"))));
}

TEST(SummaryText, SumsUpALongRemainder) {
  analysis::AnalysisResult result = Host(1, 0);
  const analysis::GroupInfo edges{"pcpu_edges", "", SectionLevel::kTrace, GroupLayout::kRemainder};
  analysis::MetricGroup& group = result.document.trace.AddGroup(edges);
  for (uint64_t pcpu = 0; pcpu < 5; ++pcpu) {
    group.rows.push_back(analysis::MetricRow{fmt::format("p{}", pcpu), {}, {}}
                             .Add("count", MetricUnit::kCount, 1)
                             .Add("cycles", MetricUnit::kCycles, 1000));
  }
  EXPECT_THAT(Text(result),
              HasSubstr("  not included above: p0 1.000 us; p1 1.000 us; p2 1.000 us; "
                        "p3 1.000 us; p4 1.000 us\n"));
  group.rows.push_back(analysis::MetricRow{"p5", {}, {}}
                           .Add("count", MetricUnit::kCount, 2)
                           .Add("cycles", MetricUnit::kCycles, 500));
  EXPECT_THAT(Text(result), HasSubstr("; p3 1.000 us; 2 more 1.500 us (3 times)\n"));
}

// A single part with its parent's figures shares the parent's line, and keeps its own parts.
TEST(SummaryText, KeepsPartsOfJoinedRows) {
  analysis::AnalysisResult result;
  const auto row = [](const char* name, uint64_t count) {
    return analysis::MetricRow{name, {}, {}}.Add("count", MetricUnit::kCount, count);
  };
  analysis::MetricRow handler = row("page_fault", 3);
  handler.parts = {row("propagate", 1), row("fixup", 2)};
  analysis::MetricRow reason = row("VMEXIT_EXCEPTION_PF", 3);
  reason.parts = {handler};
  result.document.trace.AddGroup({"exits", "Exit reasons"}).rows = {reason};
  EXPECT_THAT(Text(result), HasSubstr("  VMEXIT_EXCEPTION_PF: page_fault      3\n"
                                      "    propagate                          1\n"
                                      "    fixup                              2\n"));
}

}  // namespace
}  // namespace xenoscope::report
