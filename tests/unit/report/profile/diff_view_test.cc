#include "report/profile/diff_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

struct RowSpec {
  const char* function;
  double share;
};

// Makes a profile of ten thousand samples.
ProfileReport Profile(std::initializer_list<RowSpec> rows) {
  ProfileReport report;
  report.by = {Dimension::kFunction};
  report.result.samples = 10'000;
  report.result.cycles = 4e9;
  report.sampled = {Tsc{0}, Tsc{2'000'000'000}};
  for (const RowSpec& of : rows) {
    ProfileRow row;
    row.function = of.function;
    row.share = of.share;
    row.variance = of.share * (1 - of.share) / 10'000;
    report.result.rows.push_back(row);
  }
  return report;
}

// Compares the profiles, which are named a.xeno, b.xeno and so on.
Diff DiffOfAll(const std::vector<ProfileReport>& profiles, DiffBasis of,
               const std::vector<double>& work = {}) {
  std::vector<DiffSide> sides;
  for (const ProfileReport& profile : profiles) {
    const size_t i = sides.size();
    const char letter = static_cast<char>('a' + i);
    sides.push_back({&profile, std::string(1, letter) + ".xeno", work.empty() ? 1 : work[i]});
  }
  return DiffProfiles(sides, of);
}

TEST(Diff, MatchesRowsByNameAndMarksNewAndGone) {
  const Diff diff = DiffOfAll({Profile({{"hash", 0.5}, {"memcpy", 0.3}, {"old", 0.2}}),
                               Profile({{"memcpy", 0.3}, {"hash", 0.4}, {"fresh", 0.3}})},
                              DiffBasis::kShare);
  EXPECT_EQ(
      DiffText(diff, {}, {}),
      "before: a.xeno (10,000 samples)\n"
      "after:  b.xeno (10,000 samples)\n"
      "share of all time; low to high, or ±: 95 % interval of the difference; p: corrected for 4 "
      "comparisons, *: below 0.05\n"
      "\n"
      "before   after  difference      low     high  function  p\n"
      " 0.00%  30.00%      30.00%   29.10%   30.90%  fresh     <1e-6 *  new\n"
      "20.00%   0.00%     -20.00%  -20.78%  -19.22%  old       <1e-6 *  gone\n"
      "50.00%  40.00%     -10.00%  -11.37%   -8.63%  hash      <1e-6 *\n"
      "30.00%  30.00%       0.00%   -1.27%    1.27%  memcpy    1\n"
      "\n"
      "4 rows: 3 differ significantly (p below 0.05), 1 new, 1 gone\n");
}

// Growth that may be chance is none, whatever the threshold.
TEST(Diff, FindsRowsThatGrew) {
  const Diff diff =
      DiffOfAll({Profile({{"hash", 0.5}, {"copy", 0.3}, {"scan", 0.1}, {"walk", 0.1}}),
                 Profile({{"hash", 0.4}, {"copy", 0.35}, {"scan", 0.145}, {"walk", 0.105}})},
                DiffBasis::kShare);
  const struct {
    double threshold;
    std::vector<std::string> grown;
  } kCases[] = {{0, {"copy", "scan"}}, {0.047, {"copy"}}, {0.06, {}}};
  for (const auto& [threshold, expected] : kCases) {
    std::vector<std::string> names;
    for (const DiffRow* row : GrownRows(diff, threshold)) names.push_back(row->words[0]);
    EXPECT_EQ(names, expected) << threshold;
  }
  EXPECT_EQ(GrownRowsText(diff, GrownRows(diff, 0.02), 0.02),
            "2 rows grew by more than 2.00% and by more than chance: copy (+5.00%), scan (+4.50%)");
}

TEST(Diff, ComparesProcessorTime) {
  // 4 G cycles in 2 G cycles are two processors.
  ProfileReport after = Profile({{"hash", 0.5}});
  after.result.cycles = 2e9;
  const Diff diff = DiffOfAll({Profile({{"hash", 0.5}}), after}, DiffBasis::kProcessor);
  EXPECT_NEAR(diff.rows[0].before.value, 1.0, 1e-12);
  EXPECT_NEAR(diff.rows[0].changes[0].after.value, 0.5, 1e-12);
  EXPECT_NEAR(diff.rows[0].before.variance, 4 * 0.25 / 10'000, 1e-12);
}

// The first profile has 4 G cycles for a thousand requests, the second has 2 G for two thousand.
TEST(Diff, ComparesWorkUnits) {
  ProfileReport after = Profile({{"hash", 0.5}, {"copy", 0.5}});
  after.result.cycles = 2e9;
  Diff diff =
      DiffOfAll({Profile({{"hash", 0.75}, {"copy", 0.25}}), after}, DiffBasis::kWork, {1000, 2000});
  EXPECT_NEAR(diff.rows[0].before.value, 3e6, 1e-3);
  EXPECT_NEAR(diff.rows[0].changes[0].after.value, 5e5, 1e-3);
  EXPECT_NEAR(diff.rows[0].before.variance, 4e6 * 4e6 * 0.75 * 0.25 / 10'000, 1);
  EXPECT_THAT(DiffText(diff, {}, {}),
              testing::HasSubstr("cycles per unit of work; low to high, or ±"));
  EXPECT_THAT(DiffText(diff, {}, {}), testing::HasSubstr("3.00 M  500.0 k"));
  EXPECT_EQ(DiffJson(diff, {})["of"], "work");
  // hash saved 62.5 % of the four million cycles that a request took before, and copy saved 12.5 %.
  EXPECT_EQ(DiffJson(diff, {.threshold = 0.6})["rows"].size(), 1U);
  diff.is_time = false;
  EXPECT_THAT(DiffText(diff, {}, {}),
              testing::HasSubstr("samples per unit of work; low to high, or ±"));
}

TEST(Diff, FoldsCallChainsOfBothSides) {
  const auto chains = [](std::initializer_list<RowSpec> rows) {
    static const std::vector<Function> functions = {{"web", "main", ""}, {"web", "hash", ""}};
    ProfileReport report = Profile(rows);
    report.by = {Dimension::kStack, Dimension::kFunction};
    report.function_of = [](FunctionId id) -> const Function& { return functions[id.value]; };
    // The innermost frame is first.
    report.result.stacks = {{{FunctionId{1}, Mode::kUser, 0}, {FunctionId{0}, Mode::kUser, 0}}};
    return report;
  };
  const Diff diff = DiffOfAll({chains({{"hash", 0.5}, {"copy", 0.25}, {"old", 0.25}}),
                               chains({{"copy", 0.3}, {"hash", 0.62}, {"new", 0.08}})},
                              DiffBasis::kShare);
  EXPECT_EQ(DiffFolded(diff, {}),
            "main;hash;old 250000 0\n"
            "main;hash;hash 500000 620000\n"
            "main;hash;new 0 80000\n"
            "main;hash;copy 250000 300000\n");
}

TEST(Diff, HonoursSelection) {
  const Diff diff = DiffOfAll({Profile({{"a", 0.5}, {"b", 0.25}, {"c", 0.25}}),
                               Profile({{"a", 0.4}, {"b", 0.34}, {"c", 0.26}})},
                              DiffBasis::kShare);
  EXPECT_EQ(DiffJson(diff, {.threshold = 0.05})["rows"].size(), 2U);
  EXPECT_EQ(DiffJson(diff, {.limit = 1})["rows"][0]["function"], "a");
  EXPECT_EQ(DiffJson(diff, {})["comparisons"], 3);
  EXPECT_THAT(
      DiffCsv(diff, {.limit = 1}),
      testing::StartsWith("function,before,after,difference,low,high,p,note\r\na,0.5,0.4,"));
}

// Each later profile is compared with the first. A row that neither of the two has is no
// comparison.
TEST(Diff, ComparesSeveralWithTheFirst) {
  const Diff diff =
      DiffOfAll({Profile({{"hash", 0.6}, {"copy", 0.4}}),
                 Profile({{"hash", 0.6}, {"copy", 0.3}, {"log", 0.1}}), Profile({{"hash", 1}})},
                DiffBasis::kShare);
  EXPECT_EQ(diff.comparisons, 5U);
  EXPECT_EQ(DiffText(diff, {}, {}),
            "before:   a.xeno (10,000 samples)\n"
            "after 1:  b.xeno (10,000 samples)\n"
            "after 2:  c.xeno (10,000 samples)\n"
            "share of all time; low to high, or ±: 95 % interval of the difference from before; p: "
            "corrected for 5 comparisons, *: below 0.05\n"
            "\n"
            "before  after 1  difference      low    high  after 2  difference      low     high  "
            "function  p 1           p 2\n"
            "40.00%   30.00%     -10.00%  -11.31%  -8.69%    0.00%     -40.00%  -40.96%  -39.04%  "
            "copy      <1e-6 *       <1e-6 *  gone\n"
            "60.00%   60.00%       0.00%   -1.36%   1.36%  100.00%      40.00%   39.04%   40.96%  "
            "hash      1             <1e-6 *\n"
            " 0.00%   10.00%      10.00%    9.41%  10.59%    0.00%       0.00%    0.00%    0.00%  "
            "log       <1e-6 *  new  1\n"
            "\n"
            "after 1: 3 rows: 2 differ significantly (p below 0.05), 1 new, 0 gone\n"
            "after 2: 2 rows: 2 differ significantly (p below 0.05), 0 new, 1 gone\n");
  EXPECT_THAT(DiffCsv(diff, {.limit = 1}),
              testing::StartsWith("function,before,after_1,difference_1,low_1,high_1,p_1,note_1,"
                                  "after_2,difference_2,low_2,high_2,p_2,note_2\r\n"));
  const auto json = DiffJson(diff, {});
  EXPECT_EQ(json["after"][1]["name"], "c.xeno");
  EXPECT_EQ(json["rows"][2]["changes"][0]["note"], "new");
  EXPECT_EQ(json["rows"][1]["changes"][1]["difference"], 0.4);
}

}  // namespace
}  // namespace xenoscope::report
