// Traces divided over threads by time: a partition need not have seen all that comes before it.
#include "analysis/trace_division.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/series/series.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/address_space.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/analyse_one.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using trace::kIdle;
using trace::Rec;
using trace::TraceBuilder;

using Records = std::vector<std::vector<uint32_t>>;

// A trace of one pCPU, in windows of 100 cycles:
//
//   cycle  10        100   110   120   ...   950   960   ...   1000
//   p0     `first`   d1v0  d2v0  d1v0  ...   idle  d2v0  ...
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
  auto result = AnalyseDivision(*file, {}, AllAnalyses, PartitionAtEach(begins));
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// Expects that no partition had to be counted twice, and that the result is that of one partition.
void ExpectAllStand(const TraceBuilder& trace, const std::vector<PartitionBegin>& begins,
                    const AnalysisResult& whole) {
  const AnalysisResult divided = Divided(trace, begins);
  EXPECT_EQ(divided.partitions_repeated, 0U) << begins[0].at.value;
  EXPECT_TRUE(divided.document == whole.document) << begins[0].at.value;
}

TEST(Partitions, AreValidWhenWarmUpMissesIdleVcpu) {
  const TraceBuilder trace = Turns(kIdleRan);
  const AnalysisResult whole = Divided(trace, {});
  // The idle vCPU, last seen at 90, runs again in the second partition, the third, or the first.
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{{Tsc{500}, Tsc{300}}},
        std::vector<PartitionBegin>{{Tsc{400}, Tsc{300}}, {Tsc{700}, Tsc{500}}},
        std::vector<PartitionBegin>{{Tsc{970}, Tsc{965}}}}) {
    ExpectAllStand(trace, begins, whole);
  }
}

TEST(Partitions, AreRepeatedWhenTheirWarmUpIsTooShort) {
  //   cycle  10     15             20    90
  //   p0     d3v0                  idle
  //   d3v0   runs   blocked for ever: a short warm-up does not show it
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

TEST(Partitions, AreValidWhenWarmUpMissesWakeup) {
  // d3v0 gets an interrupt, writes cr3 once, and does not halt before the end. Every 100 cycles it
  // exits, gets another interrupt, enters, is preempted for 10 cycles, and enters again:
  //
  //   cycle  10   20     30      40      100   120    140        150   160   ...  1000
  //   d3v0   runs enter  exit    enter   exit  enter  preempted  runs  enter ...  blocked
  //               (0x30) cr3=..          (0x31, 0x32, ...)
  //
  // The interrupt of a window awaits its entry at the first border of a partition.
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(3, 0)}), Rec(kInjVirq, {0x30, 0}),
                   Rec(kVmentry, 20, {}), Rec(kVmexit, 30, {kVmxCrAccess, 0, 0}),
                   Rec(kCrWrite, {kCr3, 0x1000, 0}), Rec(kVmentry, 40, {})});
  for (uint32_t begin = 100; begin < 1000; begin += 100) {
    trace.Window(
        0,
        {Rec(kVmexit, begin, {kVmxExternalInterrupt, 0, 0}), Rec(kInjVirq, {0x31 + begin / 300, 0}),
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
              ElementsAre("cr3/0x1000 switches=1 guest_cycles=600 hypervisor_cycles=270"));
}

TEST(Partitions, AreOneForEachThread) {
  const TraceBuilder trace = Turns(kIdleRan);
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const TraceDivision division = DivideTraceOfAnyLength(*file, 3, 1);
  EXPECT_THAT(division.starts, ElementsAre(0, 1, 2));
  const std::vector<PartitionBegin>& begins = division.begins;
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_LT(begins[0].at, begins[1].at);
  for (const PartitionBegin& begin : begins) {
    if (begin.warm_up) {
      EXPECT_LT(*begin.warm_up, begin.at);
    }
  }
  for (const TraceDivision& one : {DivideTraceOfAnyLength(*file, 1, 4), DivideTrace(*file, 8)}) {
    EXPECT_TRUE(one.begins.empty()) << "one thread, or too short to be worth it";
    EXPECT_THAT(one.starts, ElementsAre(0));
  }
}

TEST(Partitions, DivideBytesNotWindows) {
  // Ten windows of one visit, at 100, 200, ..., then ten of ten visits.
  TraceBuilder trace;
  for (uint32_t begin = 100; begin <= 2000; begin += 100) {
    Records records;
    for (uint32_t at = begin; at < begin + (begin <= 1000 ? 10 : 100); at += 10) {
      records.push_back(Rec(kRunnableToRunning, at, {Vcpu(1, 0)}));
      records.push_back(Rec(kRunningToRunnable, at + 10, {Vcpu(1, 0)}));
    }
    trace.Window(0, records);
  }
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const std::vector<PartitionBegin> begins = DivideTraceOfAnyLength(*file, 2, 1).begins;
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0].at, Tsc{1600}) << "20 + 100 records before it, 100 behind";
  EXPECT_EQ(begins[0].warm_up, Tsc{1400}) << "at least two windows";
}

TEST(Partitions, DivideTracesOfTwoWindowsForEachPcpu) {
  // As xentrace writes them with large buffers: all that each pCPU has, two times.
  TraceBuilder trace;
  for (const uint32_t begin : {100, 200}) {
    for (const uint32_t pcpu : {0, 1, 2, 3}) {
      Records records;
      for (uint32_t at = begin; at < begin + 100; at += 10) {
        records.push_back(Rec(kRunnableToRunning, at, {Vcpu(1, pcpu)}));
        records.push_back(Rec(kRunningToRunnable, at + 5, {Vcpu(1, pcpu)}));
      }
      trace.Window(pcpu, records);
    }
  }
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const std::vector<PartitionBegin> begins = DivideTraceOfAnyLength(*file, 2, 1).begins;
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0].at, Tsc{200});
  EXPECT_EQ(begins[0].warm_up, std::nullopt) << "all that comes before";
}

TEST(Partitions, HaveSteps) {
  // Ten windows, at 20 (a short one), 100, 200, ..., 900, and three steps of two threads.
  const TraceBuilder trace = Turns(kIdleRan);
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  const TraceDivision division = DivideTraceOfAnyLength(*file, 2, 3);
  std::vector<Tsc> begins;
  for (const PartitionBegin& begin : division.begins) begins.push_back(begin.at);
  EXPECT_THAT(begins, ElementsAre(Tsc{200}, Tsc{400}, Tsc{600}, Tsc{700}, Tsc{900}));
  EXPECT_THAT(division.starts, ElementsAre(0, 3));
  // With more steps than windows, each has one.
  const TraceDivision windows = DivideTraceOfAnyLength(*file, 2, 100);
  EXPECT_EQ(windows.begins.size(), 9U);
  EXPECT_THAT(windows.starts, ElementsAre(0, 6));
}

// The traces contradict themselves. In those of the first seeds it once mattered where they were
// divided: for timeslices that go on, domains that end, idle vCPUs, and the end of the trace.
TEST(Partitions, DoNotChangeTheResult) {
  size_t valid = 0;
  for (const uint32_t seed : {10, 61, 64, 574, 802, 1, 2, 3, 4, 5, 6, 7, 8}) {
    const RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto whole = AnalyseDivision(*file, {}, AllAnalyses, {});
    ASSERT_TRUE(whole.ok()) << whole.status();
    const TscRange range = whole->metadata.range;
    // In the last, the first thread has one step, then takes over steps of the second.
    TraceDivision taken_over{EqualSteps(range, 100, 0.5), {0, 1}};
    const TraceDivision divisions[] = {PartitionAtEach(EqualSteps(range, 40, 1)),
                                       PartitionAtEach(EqualSteps(range, 40, 0.5)),
                                       PartitionAtEach(EqualSteps(range, 7, 0.1)), taken_over};
    for (const TraceDivision& division : divisions) {
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", " << division.begins.size() << " begins");
      const auto divided = AnalyseDivision(*file, {}, AllAnalyses, division);
      ASSERT_TRUE(divided.ok()) << divided.status();
      EXPECT_TRUE(divided->document == whole->document);
      EXPECT_EQ(divided->trace.records, whole->trace.records);
      if (divided->partitions_repeated < division.begins.size()) ++valid;
    }
  }
  EXPECT_GT(valid, 0U);
}

// Returns "NAME KEY TOTAL" for each line of all local series, sorted.
std::vector<std::string> SeriesLines(const trace::TraceFile& file, const TraceDivision& division) {
  std::vector<const SeriesInfo*> infos;
  for (const SeriesInfo& info : kAllSeries) {
    if (info.local) infos.push_back(&info);
  }
  const auto make = [&infos] {
    std::vector<std::unique_ptr<Analysis>> analyses;
    analyses.reserve(infos.size());
    for (const SeriesInfo* info : infos) analyses.push_back(info->make({}));
    return analyses;
  };
  const auto result = AnalyseDivision(file, {}, make, division);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<std::string> lines;
  for (size_t i = 0; i < infos.size(); ++i) {
    for (const auto& line : static_cast<const Series&>(*(*result->analyses)[i]).sums().lines()) {
      lines.push_back(fmt::format("{} {} {}", infos[i]->name, line.key, line.total));
    }
  }
  std::ranges::sort(lines);
  return lines;
}

TEST(Partitions, DoNotChangeTheTotalsOfSeries) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTrace random(seed, 8);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const auto whole = AnalyseDivision(*file, {}, AllAnalyses, {});
    ASSERT_TRUE(whole.ok()) << whole.status();
    const std::vector<std::string> lines = SeriesLines(*file, {});
    EXPECT_THAT(lines, SizeIs(::testing::Gt(20)));
    for (const uint64_t steps : {2, 7, 40}) {
      const TraceDivision division = PartitionAtEach(EqualSteps(whole->metadata.range, steps, 0.5));
      EXPECT_EQ(SeriesLines(*file, division), lines) << steps;
    }
  }
}

}  // namespace
}  // namespace xenoscope::analysis
