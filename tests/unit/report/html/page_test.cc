// Tests that a page of many rows has the largest of them, and says what it left out.
#include "report/html/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "report/html/packed.h"

namespace xenoscope::report {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

// A report of so many functions, each with one sample more than the one before.
ProfileReport Functions(uint32_t number) {
  ProfileReport report;
  report.by = {correlate::Dimension::kFunction};
  report.domain_name = [](DomainId) { return ""; };
  const double all = number * (number + 1.0) / 2;
  for (uint32_t i = 1; i <= number; ++i) {
    correlate::ProfileRow row;
    row.function = fmt::format("f{}", i);
    row.samples = i;
    row.share = i / all;
    report.result.rows.push_back(row);
  }
  report.result.samples = all;
  return report;
}

ordered_json PageOf(const ProfileReport& report) {
  return ProfilePage(report, report, report.result, {});
}

TEST(ProfilePage, HasAllRowsOfAHost) {
  const ordered_json page = PageOf(Functions(2000));
  EXPECT_EQ(page["report"]["rows"].size(), 2000);
  EXPECT_FALSE(page.contains("rows_left_out"));
}

TEST(ProfilePage, LeavesOutTheSmallestOfManyRows) {
  constexpr uint32_t kRows = 20'000;
  const ordered_json page = PageOf(Functions(kRows));
  const ordered_json& rows = page["report"]["rows"];
  EXPECT_LT(rows.dump().size(), 1'600'000);
  ASSERT_GT(rows.size(), 1000);
  EXPECT_EQ(page["rows_left_out"]["rows"], kRows - rows.size());
  double samples = page["rows_left_out"]["samples"];
  double share = page["rows_left_out"]["share"];
  const size_t smallest = kRows - rows.size() + 1;
  for (const ordered_json& row : rows) {
    EXPECT_GE(row["samples"], smallest);
    samples += row["samples"].get<double>();
    share += row["share"].get<double>();
  }
  EXPECT_DOUBLE_EQ(samples, kRows * (kRows + 1.0) / 2);
  EXPECT_NEAR(share, 1, 1e-9);
}

// Symbols come from guests.
TEST(ProfilePage, NamesThatAreNotUtf8AreReplaced) {
  ProfileReport report = Functions(1);
  report.result.rows[0].function = "f\xff";
  EXPECT_THAT(ToPage(PageOf(report)).value(), HasSubstr("\"f\uFFFD\""));
}

// What is packed is most of a page, and is not looked at as other texts are.
TEST(ToPage, HasPackedTextsAndOthers) {
  const std::string packed = Packed(std::string(100'000, 'x')).value() + std::string(5000, 'A');
  const std::string text(5000, '<');
  const ordered_json data{{"<key>", 1},
                          {"inside", {{"packed", packed}, {"none", {}}, {"text", text}}}};
  const std::string page = ToPage(data).value();
  EXPECT_THAT(page, HasSubstr("{\"\\u003ckey\\u003e\":1,\"inside\":{\"packed\":\"" + packed +
                              "\",\"none\":null,\"text\":\"\\u003c"));
  EXPECT_THAT(page, Not(HasSubstr("<<<<")));
}

TEST(BytesLeft, KeepPagesSmall) {
  const ordered_json some{{"notes", std::string(100'000, 'x')}};
  const size_t of_few = BytesLeft(some, 2);
  EXPECT_LE(ToPage(some)->size() + of_few, 3'000'000);
  EXPECT_GT(of_few, 2'000'000);
  EXPECT_GT(BytesLeft(some, 64), of_few);
  EXPECT_EQ(BytesLeft(some, 128), BytesLeft(some, 4096));
  EXPECT_LE(ToPage(some)->size() + BytesLeft(some, 4096), 10'000'000);
  // What '<' becomes counts, too.
  EXPECT_EQ(BytesLeft({{"notes", std::string(2'000'000, '<')}}, 2), kLeastRestBytes);
}

}  // namespace
}  // namespace xenoscope::report
