#include "report/profile/check_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace xenoscope::report {
namespace {

using correlate::PlacingCheck;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the check of a domain that passes all limits.
PlacingCheck Content() {
  PlacingCheck check;
  check.domain = DomainId{2};
  check.samples = 10'000;
  check.bracketed = 9'000;
  check.bracket = 1e6;
  check.clocked = 300;
  check.clock_error = 400;
  check.timeslice = 5e6;
  check.exact = 1'000;
  check.distance = 0.03;
  return check;
}

ProfileReport ReportOf(const PlacingCheck& check) {
  ProfileReport report;
  report.placing_checks = {check};
  report.clock = {1'000'000'000, ClockSource::kRecorded};
  report.domain_name = [](DomainId) { return "web"; };
  return report;
}

TEST(CheckNotes, AreEmptyWhenConsistent) {
  EXPECT_THAT(CheckNotes(ReportOf(Content())), IsEmpty());
}

TEST(CheckNotes, ReportImpossibleSamples) {
  PlacingCheck check = Content();
  check.impossible = 500;
  ProfileReport report = ReportOf(check);
  EXPECT_THAT(CheckNotes(report),
              ElementsAre(HasSubstr("The trace contradicts samples (web 5.00% of the samples)")));
  EXPECT_THAT(CheckNotes(report), ElementsAre(HasSubstr("The clocks of pCPUs may differ")));
  report.counts.lost_records = 7;
  EXPECT_THAT(CheckNotes(report), ElementsAre(HasSubstr("The trace lost records")));
}

TEST(CheckNotes, ReportDomainsThatDisagree) {
  ProfileReport report = ReportOf(Content());
  correlate::DomainCheck check;
  check.domain = DomainId{2};
  check.sampled = 0.5;
  check.traced = 0.25;
  check.error = 0.01;
  report.result.checks = {check};
  EXPECT_THAT(CheckNotes(report), ElementsAre("Samples and trace disagree (web has 50.00% of the "
                                              "samples but 25.00% of the time). Samples are not "
                                              "uniform in time. Record with another period, or "
                                              "with --source vcpu."));
  report.result.checks.assign(5, check);
  report.lost_in_buffers = 1;
  EXPECT_THAT(CheckNotes(report), ElementsAre(testing::AllOf(HasSubstr(", 2 more). "),
                                                             HasSubstr("Samples were lost"))));
}

TEST(CheckNotes, ReportSamplesThatXensVpmuDropped) {
  PlacingCheck check = Content();
  check.ran = 16e9;
  check.held = 4e9;
  ProfileReport report = ReportOf(check);
  report.period = 1e6;
  EXPECT_THAT(
      CheckNotes(report),
      ElementsAre("10,000 of some 16,000 samples came. Xen's vPMU holds one sample until "
                  "dom0's vCPU runs, and drops all others: 25.00% of the time (web 25.00%). "
                  "Shares of domains are not affected, as the trace measures their time."));
  // Other events do not say how many samples were due.
  report.is_time = false;
  EXPECT_THAT(CheckNotes(report), ElementsAre(testing::StartsWith("Xen's vPMU holds one sample")));
}

TEST(CheckNotes, ReportLongBrackets) {
  PlacingCheck check = Content();
  check.timeslice = 2e5;
  EXPECT_THAT(CheckNotes(ReportOf(check)),
              ElementsAre("Sample times are coarse (web ±500 us; timeslices last 200 us), so exit "
                          "attribution is estimated. Record with a smaller --drain-interval."));
}

TEST(CheckNotes, ShareOneLineAmongDomains) {
  PlacingCheck check = Content();
  check.timeslice = 2e5;
  ProfileReport report = ReportOf(check);
  check.bracket = 3e6;
  check.timeslice = 1e6;
  report.placing_checks.push_back(check);
  EXPECT_THAT(
      CheckNotes(report),
      ElementsAre(HasSubstr("(web ±500 us, web ±1.5 ms; timeslices last 200 us to 1.0 ms)")));
  report.placing_checks.resize(7, check);
  EXPECT_THAT(CheckNotes(report), ElementsAre(HasSubstr("(7 domains, ±500 us to ±1.5 ms; ")));
}

// Faults, or samples in kernel mode alone, are not uniform in time.
TEST(CheckNotes, NoAliasingOfSomeModes) {
  PlacingCheck check = Content();
  check.distance = 0.4;
  ProfileReport report = ReportOf(check);
  report.stratified = false;
  EXPECT_THAT(CheckNotes(report), IsEmpty());
}

TEST(CheckNotes, ReportAliasing) {
  PlacingCheck check = Content();
  check.distance = 0.4;
  EXPECT_THAT(
      CheckNotes(ReportOf(check)),
      ElementsAre(HasSubstr("in step with the work that they sample (web 40.00% too many")));
}

TEST(UnresolvedNotes, NameTheMostFrequentReasons) {
  ProfileReport report = ReportOf(Content());
  EXPECT_THAT(UnresolvedNotes(report), IsEmpty());
  report.result.unresolved = {{"no symbols for d1's kernel", 1}};
  EXPECT_THAT(UnresolvedNotes(report),
              ElementsAre("1 sample has no function: no symbols for d1's kernel"));
  report.result.unresolved = {{"a", 60}, {"b", 50}, {"c", 40}, {"d", 30}, {"e", 20}, {"f", 1}};
  EXPECT_THAT(UnresolvedNotes(report),
              ElementsAre("201 samples have no function: a (60); b (50); c (40); d (30); 2 other "
                          "reasons (21), see --origins"));
}

TEST(CheckNotes, JsonHasAllFields) {
  const auto json = PlacingChecksJson(ReportOf(Content()));
  EXPECT_EQ(json.dump(),
            R"([{"domain":"web","samples":10000,"impossible":0,"says_impossible":false,)"
            R"("bracketed":9000,"bracket_seconds":0.001,"clocked":300,)"
            R"("clock_error_seconds":4e-07,"turn_seconds":0.005,)"
            R"("long_brackets":false,"at_known_instants":1000,"missed":0,"seconds":0.0,)"
            R"("held_seconds":0.0,)"
            R"("distance_of_turn_ages":0.03,"in_step":false}])");
}

}  // namespace
}  // namespace xenoscope::report
