// Tests the sentences about what happened to domains.
#include "report/profile/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xenoscope::report {
namespace {

using recording::DomainChange;
using recording::RecordingInfo;
using ::testing::ElementsAre;
using Kind = DomainChange::Kind;

constexpr DomainId kWeb{3};

// One second is 1000 cycles. Sampling starts at cycle 5000.
RecordingInfo Info() {
  RecordingInfo info;
  info.host.clock_hz = 1000;
  info.started = Tsc{5000};
  info.domains.emplace_back();
  info.domains.back().id = kWeb;
  info.domains.back().name = "web";
  return info;
}

DomainChange Change(Kind kind, DomainId domain, uint64_t end) {
  return {kind, domain, std::nullopt, {Tsc{end - 200}, Tsc{end}}};
}

TEST(ChangeLinesTest, EachDomainHasOneLineInTimeOrder) {
  RecordingInfo info = Info();
  info.changes = {Change(Kind::kPaused, kWeb, 6000), Change(Kind::kCreated, DomainId{7}, 6500),
                  Change(Kind::kUnpaused, kWeb, 7200)};
  info.changes.push_back({Kind::kVcpuOffline, kWeb, VcpuId{1}, {Tsc{8000}, Tsc{8100}}});
  EXPECT_THAT(ChangeLines(info),
              ElementsAre("web (d3): paused at 1.0 s, unpaused at 2.2 s, vCPU 1 offline at 3.1 s",
                          "d7: created at 1.5 s"));
}

TEST(ChangeLinesTest, ClampsTimesBeforeSampling) {
  RecordingInfo info = Info();
  info.changes = {Change(Kind::kPaused, kWeb, 4900)};
  EXPECT_THAT(ChangeLines(info), ElementsAre("web (d3): paused at 0.0 s"));
}

TEST(ChangeLinesTest, LimitsLineLength) {
  RecordingInfo info = Info();
  for (uint64_t i = 1; i <= 10; ++i) {
    info.changes.push_back(
        Change(i % 2 == 1 ? Kind::kPaused : Kind::kUnpaused, kWeb, 5000 + i * 1000));
  }
  ASSERT_EQ(ChangeLines(info).size(), 1U);
  EXPECT_TRUE(ChangeLines(info)[0].ends_with("unpaused at 8.0 s, and 2 more"));
}

}  // namespace
}  // namespace xenoscope::report
