#include "report/threads/claims_view.h"

#include <gtest/gtest.h>

#include <string>

#include "report/table/table_csv.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using guests::ClaimedTimes;

constexpr DomainId kClaimingGuest{1};
constexpr uint64_t kNsOfClaims = 1'000'000'000;

// 1000 cycles are a second.
Table ClaimsOf(ThreadsBy by, bool text) {
  guests::Claims claims;
  claims.vcpus = {ClaimedTimes{.vcpu = {kClaimingGuest, VcpuId{0}},
                               .range = {Tsc{1000}, Tsc{6000}},
                               .readings = 10,
                               .busy = 3 * kNsOfClaims,
                               .idle = 2 * kNsOfClaims,
                               .steal = 0,
                               .ran = 2500,
                               .waited = 500,
                               .blocked = 2000},
                  ClaimedTimes{.vcpu = {kClaimingGuest, VcpuId{1}},
                               .range = {Tsc{1000}, Tsc{6000}},
                               .readings = 20,
                               .busy = 0,
                               .idle = 4 * kNsOfClaims,
                               .steal = kNsOfClaims,
                               .ran = 0,
                               .waited = 1000,
                               .blocked = 3000,
                               .unknown = 1000}};
  return ClaimsTable(claims, [](DomainId) { return std::string("web1"); },
                     Clock{1000, ClockSource::kGiven}, {.by = by, .text = text});
}

constexpr const char* kFiguresOfClaims =
    "time_s,claimed_busy_s,claimed_busy_error_s,ran_s,claimed_steal_s,claimed_steal_error_s,"
    "waited_s,claimed_idle_s,claimed_idle_error_s,blocked_s,offline_s,unknown_s\r\n";

TEST(ClaimsTable, ShowsWhatIsSaidBesideWhatIsTrue) {
  EXPECT_EQ(ToCsv(ClaimsOf(ThreadsBy::kThread, /*text=*/false)),
            std::string("domain,vcpu,") + kFiguresOfClaims +
                "web1,0,5,3,0.06,2.5,0,0.02,0.5,2,0.03,2,0,0\r\n"
                "web1,1,5,0,0.07,0,1,0.03,1,4,0.04,3,0,1\r\n");
}

TEST(ClaimsTable, AddsTheVcpusOfADomain) {
  EXPECT_EQ(
      ToCsv(ClaimsOf(ThreadsBy::kDomain, /*text=*/false)),
      std::string("domain,") + kFiguresOfClaims + "web1,10,3,0.13,2.5,1,0.05,1.5,6,0.07,5,0,1\r\n");
}

TEST(ClaimsTable, TextLeavesOutWhatNeverHappened) {
  const std::string text = ToText(ClaimsOf(ThreadsBy::kThread, /*text=*/true), {});
  EXPECT_EQ(text.find("offline"), std::string::npos) << text;
  EXPECT_NE(text.find("not known"), std::string::npos) << text;
}

}  // namespace
}  // namespace xenoscope::report
