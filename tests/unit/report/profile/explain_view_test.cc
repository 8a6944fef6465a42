#include "report/profile/explain_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/trace/exit_reasons.h"

namespace xenoscope::report {
namespace {

using correlate::Context;
using correlate::ContextKind;
using correlate::Placement;
using correlate::ProfileRow;
using testing::HasSubstr;
using testing::Not;

constexpr VcpuRef kD1{DomainId{1}, VcpuId{0}};
constexpr Context kCpuid{ContextKind::kExit, false, trace::kVmexitCpuid};
constexpr Context kGuest{ContextKind::kGuest};

// Half of 100 samples are in CPUID exits, which are half of all time. The 100 samples are worth 80
// independent ones.
ProfileRow Emulator() {
  ProfileRow row;
  row.domain = DomainId{1};
  row.mode = Mode::kXen;
  row.image = "xen";
  row.function = "guest_cpuid";
  row.samples = 50;
  row.share = 0.25;
  row.variance = 0.25 * 0.75 / 80;
  row.interval = correlate::IntervalOf(row.share, row.variance, row.samples);
  row.cycles = 5e8;
  row.parts = {{kD1, kCpuid, 50, 100, 40, 1e9, row.variance}};
  return row;
}

ProfileReport ReportOf(const std::vector<ProfileRow>& rows) {
  ProfileReport report;
  report.by = ExplainColumns();
  report.further.resize(1);
  report.result.rows = report.further[0].rows = rows;
  for (ProfileRow& row : report.further[0].rows) row.placing = Placement::kBracketed;
  report.event = "cycles";
  report.sampled = {Tsc{0}, Tsc{2'000'000'000}};
  report.clock = {1'000'000'000, ClockSource::kRecorded};
  report.vendor = trace::Vendor::kSvm;
  report.placing_checks.emplace_back();
  report.placing_checks[0].domain = DomainId{1};
  report.placing_checks[0].bracket = 5e6;
  report.domain_name = [](DomainId) { return "web"; };
  return report;
}

TEST(Explain, IntervalScalesWithSquareRoot) {
  const IntervalForecast forecast = IntervalForecastOf(Emulator());
  EXPECT_NEAR(forecast.independent_samples, 80, 1e-9);
  const correlate::Interval wilson = correlate::Wilson(0.25, 320);
  EXPECT_NEAR(forecast.with_more.low, wilson.low, 1e-9);
  EXPECT_NEAR(forecast.with_more.high, wilson.high, 1e-9);
}

TEST(Explain, KnownPlacesLeaveSamplingVariance) {
  // Half of 100 samples of half of all time have a variance of 0.5^2 0.5 0.5 / 100.
  const IntervalForecast forecast = IntervalForecastOf(Emulator());
  const correlate::Interval expected = correlate::IntervalOf(0.25, 0.25 * 0.25 / 100, 50);
  EXPECT_NEAR(forecast.places_known.low, expected.low, 1e-9);
  EXPECT_NEAR(forecast.places_known.high, expected.high, 1e-9);
}

TEST(Explain, HasPlacementsAndStrata) {
  const std::string text = ExplainText(ReportOf({Emulator()}), {"guest_cpuid", {}}, {});
  EXPECT_THAT(text, HasSubstr("guest_cpuid in xen, d1 web, xen mode"));
  EXPECT_THAT(text,
              HasSubstr("50 estimated within a drain interval (mean of the domain: 5.000 ms)"));
  EXPECT_THAT(text, HasSubstr("d1v0 VMEXIT_CPUID"));
  EXPECT_THAT(text, HasSubstr("500.0 M"));
  EXPECT_THAT(text, HasSubstr("4 times the samples: ±4.7"));
  EXPECT_THAT(text, HasSubstr("(8 s at this rate)"));
}

TEST(Explain, HasTheErrorOfTheSamplingClock) {
  ProfileReport report = ReportOf({Emulator()});
  report.further[0].rows[0].placing = Placement::kClocked;
  report.placing_checks[0].clocked = 50;
  report.placing_checks[0].clock_error = 390;
  EXPECT_THAT(ExplainText(report, {"guest_cpuid", {}}, {}),
              HasSubstr("50 by the sampling clock, ±390 ns (95 %)\n"));
  EXPECT_EQ(ClockErrorText(report, DomainId{2}), "");
  report.placing_checks.push_back(report.placing_checks[0]);
  report.placing_checks[1].domain = DomainId{2};
  report.placing_checks[1].clocked = 150;
  report.placing_checks[1].clock_error = 790;
  EXPECT_EQ(ClockErrorText(report, {}), ", ±690 ns (95 %)");
}

TEST(Explain, BracketsMatterWithSeveralStrata) {
  ProfileRow row = Emulator();
  EXPECT_THAT(ExplainText(ReportOf({row}), {"guest_cpuid", {}}, {}),
              HasSubstr("Record for longer"));
  row.parts.push_back({kD1, kGuest, 1, 1000, 40, 1e9, 0});
  const std::string text = ExplainText(ReportOf({row}), {"guest_cpuid", {}}, {});
  EXPECT_THAT(text, HasSubstr("--drain-interval below 5.000 ms"));
  EXPECT_THAT(text, Not(HasSubstr("Record for longer")));
}

TEST(Explain, TakesPatternsAndDomains) {
  ProfileRow other = Emulator();
  other.function = "do_cpuid";
  other.share = 0.3;
  other.domain = DomainId{2};
  const ProfileReport report = ReportOf({Emulator(), other});
  EXPECT_EQ(ExplainedRows(report, {"*cpuid", {}}).size(), 2U);
  EXPECT_EQ(ExplainedRows(report, {"*cpuid", {}})[0]->function, "do_cpuid");
  EXPECT_EQ(ExplainedRows(report, {"*cpuid", {DomainId{1}}}).size(), 1U);
  EXPECT_TRUE(ExplainedRows(report, {"cpuid", {}}).empty());
}

// Names of C++ have brackets, which must not be a pattern here.
TEST(Explain, MatchesExactName) {
  ProfileRow row = Emulator();
  row.function = "Table[]::At";
  EXPECT_EQ(ExplainedRows(ReportOf({row}), {"Table[]::At", {}}).size(), 1U);
}

TEST(Explain, JsonHasTheSame) {
  const auto json = ExplainJson(ReportOf({Emulator()}), {"guest_cpuid", {}});
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["placements"]["bracketed"], 50);
  EXPECT_EQ(row["placements"]["twin"], 0);
  EXPECT_EQ(row["strata"][0]["exit"], "VMEXIT_CPUID");
  EXPECT_EQ(row["strata"][0]["cycles"], 500'000'000);
  EXPECT_EQ(row["strata"][0]["of_variance"], 1.0);
  EXPECT_EQ(row["advice"].size(), 2U);
}

}  // namespace
}  // namespace xenoscope::report
