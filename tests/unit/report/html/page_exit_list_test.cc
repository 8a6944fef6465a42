// Tests the page's list of VM exits: how long they took, over time, and the bounds of what PV
// guests did in Xen.
#include "report/html/page_exit_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/html/packed.h"

namespace xenoscope::report {
namespace {

using correlate::MarkKind;
using nlohmann::ordered_json;

TEST(LengthStep, DividesOctavesInFourEqualParts) {
  struct Case {
    Cycles length;
    uint32_t step;
  };
  for (const auto& [length, step] : std::vector<Case>{{0, 0},
                                                      {1, 0},
                                                      {2, 4},
                                                      {3, 6},
                                                      {4, 8},
                                                      {5, 9},
                                                      {6, 10},
                                                      {7, 11},
                                                      {1024, 40},
                                                      {1279, 40},
                                                      {1280, 41},
                                                      {2047, 43},
                                                      {~Cycles{0}, 255}}) {
    EXPECT_EQ(LengthStep(length), step) << length;
  }
}

class ExitList : public testing::Test {
 protected:
  ExitList() {
    report_.domain_name = [](DomainId) { return "web"; };
    report_.sampled = {Tsc{1000}, Tsc{100'000}};
  }
  void Exit(uint64_t begin, uint64_t length) {
    correlate::ExitArc arc;
    arc.vcpu = {DomainId{1}, VcpuId{0}};
    arc.range = {Tsc{begin}, Tsc{begin + length}};
    arc.finished = true;
    list_.AddExit(arc);
  }
  void MarkAt(uint64_t at, MarkKind kind, uint32_t number, uint32_t vcpu = 0) {
    list_.OnMark({{DomainId{2}, VcpuId{vcpu}}, vcpu, PcpuId{0}, Tsc{at}, kind, number});
  }
  void EndRun(uint32_t vcpu, uint64_t at) {
    correlate::RunstateInterval run;
    run.vcpu_index = vcpu;
    run.range = {Tsc{0}, Tsc{at}};
    run.state = correlate::TimelineState::kRunning;
    list_.OnRunstateInterval(run);
  }
  ordered_json Json() {
    list_.Finish();
    return list_.counts().ToJson(report_.sampled.begin).value();
  }

  ProfileReport report_;
  PageExitList list_{report_};
};

TEST_F(ExitList, HasTheNumberOfExitsByLength) {
  Exit(2000, 1024);
  Exit(4000, 1100);
  Exit(6000, 5000);
  const ordered_json page = Json();
  ASSERT_EQ(page["list"].size(), 1U);
  EXPECT_EQ(page["list"][0]["count"], 3);
  EXPECT_EQ(page["list"][0]["at_most"], false);
  // Of the exit 0 there are two: its steps.
  const auto step = static_cast<char>(LengthStep(1024));
  const std::string steps{2, step, static_cast<char>(LengthStep(5000) - step)};
  EXPECT_EQ(page["length_steps"], Packed(steps).value());
}

TEST_F(ExitList, BoundsAHypercallByTheNextRecordOfItsVcpu) {
  MarkAt(2000, MarkKind::kHypercall, 29);
  MarkAt(2050, MarkKind::kTrap, 13, 1);  // of another vCPU
  MarkAt(2500, MarkKind::kHypercall, 32);
  EndRun(0, 2600);
  EndRun(1, 9050);
  const ordered_json page = Json();
  ASSERT_EQ(page["list"].size(), 2U);
  const ordered_json& trap = page["list"][0];
  EXPECT_EQ(trap["name"], "trap");
  EXPECT_EQ(trap["cycles"], 7000);
  const ordered_json& calls = page["list"][1];
  EXPECT_EQ(calls["name"], "hypercall");
  EXPECT_EQ(calls["at_most"], true);
  EXPECT_EQ(calls["count"], 2);
  EXPECT_EQ(calls["cycles"], 600);
  EXPECT_EQ(calls["parts"], (ordered_json{{"sched_op", 1, 500}, {"evtchn_op", 1, 100}}));
}

TEST_F(ExitList, LeavesOutWhatIsNotShown) {
  MarkAt(500, MarkKind::kHypercall, 29);     // before the range
  MarkAt(99'900, MarkKind::kHypercall, 29);  // ends behind it
  EndRun(0, 200'000);
  MarkAt(300'000, MarkKind::kHypercall, 29);  // behind the range
  EndRun(0, 300'100);
  const ordered_json page = Json();
  ASSERT_EQ(page["list"].size(), 1U);
  EXPECT_EQ(page["list"][0]["count"], 1);
  EXPECT_EQ(page["list"][0]["cycles"], 100);
}

// Guests choose the numbers of their hypercalls.
TEST_F(ExitList, HasOnePartForNumbersThatAreNoHypercall) {
  for (uint32_t i = 0; i < 1000; ++i) MarkAt(2000 + i, MarkKind::kHypercall, 1000 + i);
  EndRun(0, 4000);
  const ordered_json page = Json();
  ASSERT_EQ(page["list"].size(), 1U);
  EXPECT_EQ(page["list"][0]["parts"], (ordered_json{{"(others)", 1000, 2000}}));
}

}  // namespace
}  // namespace xenoscope::report
