// A trace divided over threads by time: what a partition need not have seen before it.
#include "analysis/partitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using trace::kIdle;
using trace::Rec;
using trace::TraceBuilder;

using Records = std::vector<std::vector<uint32_t>>;

// `first` from 10 to 90; then d1v0 and d2v0 take turns of 10 cycles from 100 to 1000, in windows of
// 100 cycles, but for 950 to 960, when the idle vCPU runs.
TraceBuilder Turns(const Records& first) {
  TraceBuilder trace;
  trace.Window(0, first);
  for (uint32_t begin = 100; begin < 1000; begin += 100) {
    Records records;
    for (uint32_t at = begin; at < begin + 100; at += 10) {
      const uint32_t who = at == 950 ? Vcpu(kIdle, 0) : Vcpu(1 + at / 10 % 2, 0);
      records.push_back(Rec(kRunnableToRunning, at, {who}));
      records.push_back(Rec(kRunningToRunnable, at + 10, {who}));
    }
    trace.Window(0, records);
  }
  return trace;
}

const Records kIdleRan = {Rec(kRunnableToRunning, 20, {Vcpu(kIdle, 0)}),
                          Rec(kRunningToRunnable, 90, {Vcpu(kIdle, 0)})};

AnalysisResult Divided(const TraceBuilder& trace, const std::vector<PartitionBegin>& begins) {
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  auto result = AnalysePartitions(*file, {}, AllAnalyses, begins);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// No partition had to be counted twice, and nothing is told otherwise than without partitions.
void ExpectAllStand(const TraceBuilder& trace, const std::vector<PartitionBegin>& begins,
                    const AnalysisResult& whole) {
  const AnalysisResult divided = Divided(trace, begins);
  EXPECT_EQ(divided.partitions_repeated, 0U) << begins[0].at.value;
  EXPECT_TRUE(divided.document == whole.document) << begins[0].at.value;
}

TEST(Partitions, MatchWithoutIdleVcpu) {
  const TraceBuilder trace = Turns(kIdleRan);
  const AnalysisResult whole = Divided(trace, {});
  // It runs again in the second partition, in the third, or in the first.
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{{Tsc{500}, Tsc{300}}},
        std::vector<PartitionBegin>{{Tsc{400}, Tsc{300}}, {Tsc{700}, Tsc{500}}},
        std::vector<PartitionBegin>{{Tsc{970}, Tsc{965}}}}) {
    ExpectAllStand(trace, begins, whole);
  }
}

TEST(Partitions, RepeatWhenWarmUpIsTooShort) {
  // d3v0 sleeps from 15 on: no short warm-up tells that.
  Records first = {Rec(kRunnableToRunning, 10, {Vcpu(3, 0)}),
                   Rec(kRunningToBlocked, 15, {Vcpu(3, 0)})};
  first.insert(first.end(), kIdleRan.begin(), kIdleRan.end());
  const TraceBuilder trace = Turns(first);
  const AnalysisResult whole = Divided(trace, {});
  const AnalysisResult divided = Divided(trace, {{Tsc{400}, Tsc{300}}, {Tsc{700}, Tsc{500}}});
  EXPECT_TRUE(divided.document == whole.document);
  EXPECT_EQ(DomainLines(divided, 3), DomainLines(whole, 3));
  EXPECT_FALSE(DomainLines(divided, 3).empty());
}

TEST(Partitions, MatchWithoutWakePeriod) {
  // d3v0 got an interrupt before it wrote cr3, and another that awaits its entry at the first
  // border; it never halts but at the end, and never writes cr3 again.
  constexpr uint32_t kVmentry = 0x81001;
  constexpr uint32_t kVmexit = 0x81102;
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {Vcpu(3, 0)}), Rec(0x82004, {0x30, 0}), Rec(kVmentry, 20, {}),
          Rec(kVmexit, 30, {28, 0, 0}), Rec(0x82109, {3, 0x1000, 0}), Rec(kVmentry, 40, {})});
  for (uint32_t begin = 100; begin < 1000; begin += 100) {
    trace.Window(
        0, {Rec(kVmexit, begin, {1, 0, 0}), Rec(0x82004, {0x31 + begin / 300, 0}),
            Rec(kVmentry, begin + 20, {}), Rec(kRunningToRunnable, begin + 40, {Vcpu(3, 0)}),
            Rec(kRunnableToRunning, begin + 50, {Vcpu(3, 0)}), Rec(kVmentry, begin + 60, {})});
  }
  trace.Window(
      0, {Rec(kRunningToBlocked, 1000, {Vcpu(3, 0)}), Rec(kBlockedToRunnable, 1010, {Vcpu(3, 0)})});
  const AnalysisResult whole = Divided(trace, {});
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{{Tsc{420}, Tsc{340}}},
        std::vector<PartitionBegin>{{Tsc{510}, Tsc{440}}, {Tsc{720}, Tsc{650}}},
        std::vector<PartitionBegin>{{Tsc{1000}, Tsc{940}}}}) {
    ExpectAllStand(trace, begins, whole);
  }
  EXPECT_FALSE(VcpuLines(whole, 3, 0, "guest_interrupts").empty());
  EXPECT_THAT(VcpuLines(whole, 3, 0, "cr3"),
              testing::ElementsAre("cr3/0x1000 switches=1 guest_cycles=600 hypervisor_cycles=270"));
}

TEST(Partitions, AreOnePerThreadAfterWarmUp) {
  const TraceBuilder trace = Turns(kIdleRan);
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const std::vector<PartitionBegin> begins = PartitionTraceOfAnyLength(*file, 3);
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_LT(begins[0].at, begins[1].at);
  for (const PartitionBegin& begin : begins) {
    if (begin.warm_up) {
      EXPECT_LT(*begin.warm_up, begin.at);
    }
  }
  EXPECT_TRUE(PartitionTraceOfAnyLength(*file, 1).empty());
  EXPECT_TRUE(PartitionTrace(*file, 8).empty()) << "too short to be worth it";
}

}  // namespace
}  // namespace xenoscope::analysis
