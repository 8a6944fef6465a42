// Tests the choice of rows by the words of their columns.
#include "report/profile/row_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ProfileRow MakeRow(uint16_t domain, Mode mode, std::string function) {
  ProfileRow row;
  row.domain = {domain};
  row.mode = mode;
  row.function = std::move(function);
  row.samples = 10;
  row.share = 0.25;
  return row;
}

ProfileReport Report() {
  ProfileReport report;
  report.by = {Dimension::kDomain, Dimension::kMode, Dimension::kFunction};
  report.result.rows = {MakeRow(1, Mode::kUser, "hash"), MakeRow(1, Mode::kXen, "svm_vmexit"),
                        MakeRow(0, Mode::kXen, "svm_do_resume"), MakeRow(2, Mode::kUser, "main")};
  report.result.domains = {MakeRow(0, Mode::kUser, ""), MakeRow(1, Mode::kUser, ""),
                           MakeRow(2, Mode::kUser, "")};
  report.result.samples = 40;
  report.domain_name = [](DomainId domain) { return domain.value == 1 ? "web1" : ""; };
  return report;
}

// Returns the functions of the rows that stay.
std::vector<std::string> Kept(const std::vector<std::string>& texts) {
  std::vector<RowFilter> filters;
  for (const std::string& text : texts) {
    auto filter = ParseRowFilter(text);
    EXPECT_TRUE(filter.ok()) << filter.status();
    filters.push_back(*std::move(filter));
  }
  ProfileReport report = Report();
  const std::vector<Dimension> by = report.by;
  EXPECT_TRUE(ApplyRowFilters(filters, by, report).ok());
  std::vector<std::string> functions;
  for (const ProfileRow& row : report.result.rows) functions.push_back(row.function);
  return functions;
}

TEST(RowFilter, MatchesOnePatternOfEachColumn) {
  EXPECT_THAT(Kept({"mode=xen"}), ElementsAre("svm_vmexit", "svm_do_resume"));
  EXPECT_THAT(Kept({"function=svm_*,main"}), ElementsAre("svm_vmexit", "svm_do_resume", "main"));
  EXPECT_THAT(Kept({"mode=xen", "function=*exit"}), ElementsAre("svm_vmexit"));
  EXPECT_THAT(Kept({"mode=kernel"}), IsEmpty());
  EXPECT_THAT(Kept({}), ElementsAre("hash", "svm_vmexit", "svm_do_resume", "main"));
}

TEST(RowFilter, MatchesDomainsByNameAndId) {
  EXPECT_THAT(Kept({"domain=web1"}), ElementsAre("hash", "svm_vmexit"));
  EXPECT_THAT(Kept({"domain=d1"}), ElementsAre("hash", "svm_vmexit"));
  EXPECT_THAT(Kept({"domain=0,2"}), ElementsAre("svm_do_resume", "main"));
}

TEST(RowFilter, MatchesProcessesByNameAlone) {
  ProfileReport report = Report();
  report.by = {Dimension::kDomain, Dimension::kProcess};
  std::vector<ProfileRow>& rows = report.result.rows;
  rows[0].process_of_thread = "web (12)";
  rows[1].process_of_thread = "web (13)";
  rows[2].process_of_thread = "web (x)";
  rows[3].process_of_thread = "webd (14)";
  const std::vector<ProfileRow> all = rows;
  const auto kept = [&](const char* text) {
    rows = all;
    EXPECT_TRUE(ApplyRowFilters({*ParseRowFilter(text)}, report.by, report).ok());
    return rows.size();
  };
  EXPECT_EQ(kept("process=web"), 2);
  EXPECT_EQ(kept("process=web (13)"), 1);
  EXPECT_EQ(kept("process=web*"), 4);
}

TEST(RowFilter, ReportsRemainderAndDropsEmptyDomains) {
  ProfileReport report = Report();
  ASSERT_TRUE(ApplyRowFilters({*ParseRowFilter("mode=xen")}, report.by, report).ok());
  EXPECT_THAT(report.cautions,
              ElementsAre("only rows with mode=xen: 20.0 of 40 samples, 50.00% of all time"));
  EXPECT_EQ(report.result.domains.size(), 2U);
  EXPECT_EQ(report.result.samples, 40);
}

TEST(RowFilter, SaysWhatThereIsWhereNothingMatches) {
  ProfileReport report = Report();
  report.result.rows[1].share = 0.5;
  const std::vector<RowFilter> filters = {*ParseRowFilter("mode=xen"),
                                          *ParseRowFilter("function=x")};
  ASSERT_TRUE(ApplyRowFilters(filters, report.by, report).ok());
  EXPECT_THAT(report.cautions,
              ElementsAre("no row has function=x; the largest of function: svm_vmexit, "
                          "svm_do_resume, main",
                          HasSubstr("only rows with mode=xen and function=x: 0.0 of 40 samples")));
}

// A report by domain and function that has been filtered by mode, with the subtotals of Xen's rows.
ProfileReport FilteredByMode() {
  ProfileReport report = Report();
  report.by = {Dimension::kDomain, Dimension::kFunction, Dimension::kMode};
  std::vector<ProfileRow>& rows = report.result.rows;
  report.result.chosen_subtotals = {{MakeRow(1, Mode::kUser, ""), MakeRow(0, Mode::kUser, "")},
                                    {rows[2], rows[1]}};
  report.result.chosen_subtotals[1][0].part_of = 1;
  rows[1].part_of = 1;
  return report;
}

TEST(RowFilter, ListsWhatChosenRowsAddUpTo) {
  ProfileReport report = FilteredByMode();
  const std::vector<Dimension> listed = {Dimension::kDomain, Dimension::kFunction};
  ASSERT_TRUE(ApplyRowFilters({*ParseRowFilter("mode=xen")}, listed, report).ok());
  EXPECT_EQ(report.by, listed);
  ASSERT_EQ(report.result.rows.size(), 2U);
  EXPECT_EQ(report.result.rows[0].function, "svm_do_resume");
  ASSERT_EQ(report.result.domains.size(), 2U);
  EXPECT_EQ(report.result.domains[0].domain, DomainId{1});
  EXPECT_THAT(report.result.subtotals, IsEmpty());
  ASSERT_TRUE(report.chosen);
  EXPECT_EQ(report.chosen->samples, 20);
  // By all columns, the functions are subtotals.
  report = FilteredByMode();
  const std::vector<Dimension> all = report.by;
  ASSERT_TRUE(ApplyRowFilters({*ParseRowFilter("mode=xen")}, all, report).ok());
  EXPECT_EQ(report.by, all);
  ASSERT_EQ(report.result.subtotals.size(), 1U);
  EXPECT_EQ(report.result.subtotals[0].size(), 2U);
}

TEST(RowFilter, RefusesSubtotalsThatDoNotAddUp) {
  ProfileReport report = FilteredByMode();
  report.result.chosen_subtotals[0][1].samples = 11;
  const std::vector<Dimension> by = report.by;
  EXPECT_TRUE(absl::IsInternal(ApplyRowFilters({*ParseRowFilter("mode=xen")}, by, report)));
}

// Stacks come when all samples are added up.
TEST(RowFilter, ChoosesEarlyByWhatIsKnownThen) {
  EXPECT_TRUE(CanChooseEarly({*ParseRowFilter("exit=VMEXIT_CPUID"), *ParseRowFilter("mode=xen")}));
  EXPECT_FALSE(CanChooseEarly({*ParseRowFilter("mode=xen"), *ParseRowFilter("stack=main")}));
}

TEST(RowFilter, FiltersFurtherResults) {
  ProfileReport report;
  report.function_of = [](FunctionId id) -> const Function& {
    static const Function functions[] = {{"", "main", ""}, {"", "hash", ""}};
    return functions[id.value];
  };
  report.domain_name = [](DomainId) { return ""; };
  report.result.stacks = {{{FunctionId{0}}}};
  report.result.rows.resize(1);
  correlate::ProfileResult& further = report.further.emplace_back();
  further.stacks = {{{FunctionId{1}}}, {{FunctionId{0}}}};
  further.rows.resize(2);
  further.rows[1].stack = 1;
  ASSERT_TRUE(ApplyRowFilters({*ParseRowFilter("stack=main")}, report.by, report).ok());
  EXPECT_EQ(report.result.rows.size(), 1U);
  ASSERT_EQ(further.rows.size(), 1U);
  EXPECT_EQ(further.rows[0].stack, 1U);
}

TEST(RowFilter, RefusesInvalidFilter) {
  for (const char* text :
       {"", "mode", "mode=", "=xen", "colour=red", "mode,exit=xen", "domain=web1,exit=guest"}) {
    EXPECT_FALSE(ParseRowFilter(text).ok()) << text;
  }
  EXPECT_THAT(std::string(Message(ParseRowFilter("colour=red").status())),
              HasSubstr("choose from"));
  EXPECT_THAT(std::string(Message(ParseRowFilter("domain=web1,mode=xen").status())),
              HasSubstr("give --where mode=xen beside it"));
  EXPECT_TRUE(ParseRowFilter("function=a,b=c").ok());  // no column
}

}  // namespace
}  // namespace xenoscope::report
