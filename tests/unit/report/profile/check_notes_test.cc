#include "report/profile/check_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xenoscope::report {
namespace {

using correlate::PlacingCheck;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A domain that all checks are content with.
PlacingCheck Content() {
  PlacingCheck check;
  check.domain = DomainId{2};
  check.samples = 10'000;
  check.bracketed = 9'000;
  check.bracket = 1e6;
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
  EXPECT_THAT(CheckNotes(report), ElementsAre(HasSubstr("5.00% of the samples of web are of times "
                                                        "when its vCPU did not run")));
  report.counts.lost_records = 7;
  EXPECT_THAT(CheckNotes(report), ElementsAre(HasSubstr("the trace: it lost records")));
}

TEST(CheckNotes, ReportLongBrackets) {
  PlacingCheck check = Content();
  check.timeslice = 2e5;
  EXPECT_THAT(CheckNotes(ReportOf(check)), ElementsAre(HasSubstr("known to 1.000 ms, and its vCPUs "
                                                                 "run for 200.000 us at a time")));
}

TEST(CheckNotes, ReportAliasing) {
  PlacingCheck check = Content();
  check.distance = 0.4;
  EXPECT_THAT(CheckNotes(ReportOf(check)),
              ElementsAre(HasSubstr("samples of web are in step with its work")));
}

TEST(CheckNotes, JsonHasAllFields) {
  const auto json = PlacingChecksJson(ReportOf(Content()));
  EXPECT_EQ(json.dump(),
            R"([{"domain":"web","samples":10000,"impossible":0,"says_impossible":false,)"
            R"("bracketed":9000,"bracket_seconds":0.001,"turn_seconds":0.005,)"
            R"("long_brackets":false,"at_known_instants":1000,"missed":0,)"
            R"("distance_of_turn_ages":0.03,"in_step":false}])");
}

}  // namespace
}  // namespace xenoscope::report
