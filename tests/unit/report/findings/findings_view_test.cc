#include "report/findings/findings_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace xenoscope::report {
namespace {

using findings::Finding;
using testing::HasSubstr;

const FindingsContext kContext{"my web.xeno", {1'000'000'000, ClockSource::kGiven}};

Finding Estimated() {
  Finding finding;
  finding.rule = "hot_function";
  finding.domain = DomainId{1};
  finding.text = "f of web takes 30.00% of the time";
  finding.advice = "Look at it.";
  finding.cycles = 3e9;
  finding.interval = {2.5e9, 3.5e9};
  finding.figures = {{"share", analysis::MetricUnit::kFraction, 0.3}};
  finding.command = {"annotate", "f"};
  return finding;
}

TEST(FindingsText, HasTimeIntervalAdviceAndCommand) {
  EXPECT_EQ(FindingsText(std::vector{Estimated()}, kContext, {}),
            "Findings, by the time that they concern\n\n"
            "   3.000 s  f of web takes 30.00% of the time\n"
            "            95 % interval: 2.500 s to 3.500 s\n"
            "            Look at it.\n"
            "            xenoscope annotate f 'my web.xeno'\n");
  EXPECT_EQ(FindingsText({}, kContext, {}), "Nothing stands out.\n");
}

TEST(FindingsText, KeepsTheWidthOfATerminal) {
  EXPECT_THAT(FindingsText(std::vector{Estimated()}, kContext, {.width = 34}),
              HasSubstr("   3.000 s  f of web takes 30.00%\n            of the time\n"));
}

TEST(FirstFindingsText, IsEmptyWithoutFindings) {
  EXPECT_EQ(FirstFindingsText({}, kContext, {}), "");
  EXPECT_THAT(FirstFindingsText(std::vector(5, Estimated()), kContext, {}),
              HasSubstr("--findings: all"));
}

TEST(FindingsJson, HasStableKeys) {
  EXPECT_EQ(FindingsJson(std::vector{Estimated()}, kContext),
            nlohmann::ordered_json::parse(R"([{"rule": "hot_function", "domid": 1,
              "text": "f of web takes 30.00% of the time", "advice": "Look at it.", "seconds": 3.0,
              "low": 2.5, "high": 3.5, "figures": {"share": 0.3},
              "command": "xenoscope annotate f 'my web.xeno'"}])"));
}

}  // namespace
}  // namespace xenoscope::report
