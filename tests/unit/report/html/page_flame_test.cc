// Tests that a page holds the whole profile in a bounded number of rows.
#include "report/html/page_flame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace xenoscope::report {
namespace {

using nlohmann::ordered_json;
using testing::ElementsAre;

class NoFunctions final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }
  const Function& Describe(FunctionId /*id*/) const override { return function_; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  Function function_;
};

// A profile with 10 lines of each of 10 functions; later lines have more samples.
class PageFlameRows : public testing::Test {
 protected:
  PageFlameRows() {
    report_.domain_name = [](DomainId) { return "web"; };
    report_.function_of = [this](FunctionId id) -> const Function& { return functions_[id.value]; };
    for (uint32_t function = 0; function < 10; ++function) {
      functions_.push_back({"web", "f" + std::to_string(function), ""});
      flame_.stacks.push_back({{FunctionId{function}, Mode::kUser}});
      for (uint32_t line = 0; line < 10; ++line) {
        correlate::ProfileRow row;
        row.domain = {1};
        row.image = "web";
        row.line = "web.c:" + std::to_string(line);
        row.stack = function;
        row.samples = 10 * function + line + 1;
        row.share = row.samples / 5050;
        row.cycles = row.samples * 1000;
        row.variance = 0.5;
        flame_.rows.push_back(row);
      }
    }
  }

  static std::set<std::string> Words(const ordered_json& page, const std::string& column) {
    const auto columns = page["columns"].get<std::vector<std::string>>();
    const auto at = static_cast<size_t>(std::ranges::find(columns, column) - columns.begin());
    std::set<std::string> words;
    for (const ordered_json& row : page["rows"]) {
      size_t text = row[at].get<size_t>();
      if (column == "stack") text = page["stacks"][text][0].get<size_t>();
      words.insert(page["strings"][text].get<std::string>());
    }
    return words;
  }
  // The samples, cycles and variances of all rows.
  static std::vector<double> Sums(const ordered_json& page) {
    std::vector<double> sums(3);
    for (const ordered_json& row : page["rows"]) {
      for (size_t i = 0; i < 3; ++i) sums[i] += row[page["columns"].size() + i].get<double>();
    }
    return sums;
  }

  std::vector<Function> functions_;
  ProfileReport report_;
  correlate::ProfileResult flame_;
  NoFunctions resolver_;
  PageOverTime over_time_{resolver_};  // without a sample
};

TEST_F(PageFlameRows, KeepAllRowsWithinLimit) {
  const ordered_json page = PageFlame(report_, flame_, &over_time_, Tsc{0}, {.rows = 100}).value();
  EXPECT_EQ(page["rows"].size(), 100);
  EXPECT_EQ(Words(page, "stack").size(), 10);
  EXPECT_EQ(Words(page, "line").size(), 10);
  EXPECT_THAT(Sums(page), ElementsAre(5050, 5'050'000, 50));
}

TEST_F(PageFlameRows, FoldSmallLines) {
  const ordered_json page = PageFlame(report_, flame_, &over_time_, Tsc{0}, {.rows = 20}).value();
  EXPECT_EQ(page["rows"].size(), 20 + 8);  // the lines of two functions, and eight functions
  EXPECT_EQ(Words(page, "stack").size(), 10);
  EXPECT_THAT(Sums(page), ElementsAre(5050, 5'050'000, 50));
}

TEST_F(PageFlameRows, FoldSmallFunctions) {
  const ordered_json page = PageFlame(report_, flame_, &over_time_, Tsc{0}, {.rows = 5}).value();
  EXPECT_EQ(page["rows"].size(), 5 + 5 + 1);  // five lines, the rest of five functions, the others
  EXPECT_THAT(Words(page, "stack"),
              ElementsAre("[others, each of a smaller share]", "f5", "f6", "f7", "f8", "f9"));
  EXPECT_THAT(Sums(page), ElementsAre(5050, 5'050'000, 50));
}

TEST_F(PageFlameRows, FoldWhatTakesTooManyBytes) {
  const size_t bytes =
      PageFlame(report_, flame_, &over_time_, Tsc{0}, {}).value().dump().size() / 2;
  const ordered_json page =
      PageFlame(report_, flame_, &over_time_, Tsc{0}, {.bytes = bytes}).value();
  EXPECT_LE(page.dump().size(), bytes);
  EXPECT_GT(page["rows"].size(), 10);
  EXPECT_THAT(Sums(page), ElementsAre(5050, 5'050'000, 50));
  // However few bytes are wanted, it ends.
  EXPECT_THAT(Sums(PageFlame(report_, flame_, &over_time_, Tsc{0}, {.bytes = 1}).value()),
              ElementsAre(5050, 5'050'000, 50));
}

// What only folded rows had takes no bytes.
TEST_F(PageFlameRows, HaveOnlyTheirOwnTexts) {
  const ordered_json page = PageFlame(report_, flame_, &over_time_, Tsc{0}, {.rows = 5}).value();
  EXPECT_EQ(page["stacks"].size(), 6);  // as in FoldSmallFunctions
  EXPECT_THAT(page["strings"], testing::Contains("f9"));
  EXPECT_THAT(page["strings"], testing::Not(testing::Contains("f4")));
}

// A column of the report that other columns depend on is one of the page.
TEST_F(PageFlameRows, FoldDetailsFirst) {
  report_.by = {correlate::Dimension::kDomain, correlate::Dimension::kPcpu};
  for (size_t i = 0; i < flame_.rows.size(); ++i)
    flame_.rows[i].pcpu = PcpuId{i % 2 == 0 ? 1U : 2U};
  std::vector<correlate::ProfileRow> twice = flame_.rows;
  for (correlate::ProfileRow& row : twice) row.pcpu = PcpuId{3};
  flame_.rows.insert(flame_.rows.end(), twice.begin(), twice.end());
  const ordered_json page = PageFlame(report_, flame_, &over_time_, Tsc{0}, {.rows = 100}).value();
  EXPECT_EQ(page["rows"].size(), 100 + 50);  // the other fifty lines are of no pCPU
  EXPECT_THAT(Words(page, "pcpu"), ElementsAre("1", "2", "3", "[others, each of a smaller share]"));
  EXPECT_EQ(Words(page, "line").size(), 10);
  EXPECT_THAT(Sums(page), ElementsAre(10100, 10'100'000, 100));
}

}  // namespace
}  // namespace xenoscope::report
