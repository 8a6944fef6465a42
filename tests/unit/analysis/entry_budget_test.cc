// Traces with more numbers that guests chose than are kept: which are, must not depend on threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using trace::Rec;
using trace::TraceBuilder;

using Records = std::vector<std::vector<uint32_t>>;

// Adds an exit of the vCPU that runs, for CPUID of the leaf.
void AddCpuid(uint32_t leaf, uint32_t& tsc, Records& records) {
  records.push_back(Rec(kVmexit, tsc += 10, {kVmxCpuid, 0, 0}));
  records.push_back(Rec(kCpuid, {leaf, 0, 0, 0, 0, 0}));
  records.push_back(Rec(kVmentry, tsc += 10, {}));
}

AnalysisResult Analysed(const trace::TraceFile& file, const std::vector<PartitionBegin>& begins) {
  auto result = AnalyseDivision(file, {}, AllAnalyses, PartitionAtEach(begins));
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

TEST(EntryBudget, IsDividedWhereVcpusNeedMoreThanTheyShare) {
  // 24 vCPUs, 12 on each of two pCPUs, each with 1000 leaves of CPUID: there is room for some 17000
  // parts of exits.
  constexpr uint32_t kLeaves = 1000;
  constexpr uint32_t kTurns = 12;
  TraceBuilder trace;
  for (uint32_t pcpu = 0; pcpu < 2; ++pcpu) {
    Records records;
    uint32_t tsc = 1000 + pcpu;
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      const uint32_t vcpu = Vcpu(1 + turn * 2 + pcpu, 0);
      records.push_back(Rec(kRunnableToRunning, tsc, {vcpu}));
      for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) AddCpuid(leaf, tsc, records);
      records.push_back(Rec(kRunningToRunnable, tsc += 10, {vcpu}));
    }
    trace.Window(pcpu, records);
  }
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  const AnalysisResult whole = Analysed(*file, {});
  const size_t of_d1 = VcpuLines(whole, 1, 0, "exits").size();
  EXPECT_GT(of_d1, kLeaves / 2);
  EXPECT_LT(of_d1, kLeaves);
  for (uint16_t domain = 2; domain <= 2 * kTurns; ++domain) {
    EXPECT_EQ(VcpuLines(whole, domain, 0, "exits").size(), of_d1) << domain;
  }
  EXPECT_TRUE(Analysed(*file, {{Tsc{100'000}, std::nullopt}}).document == whole.document);
}

TEST(EntryBudget, KeepsTheFirstKeysWhereverPartitionsBegin) {
  // d1v0 asks for a leaf before the second partition begins, and again after more others than are
  // kept of a vCPU (1024), or than are kept of a partition.
  constexpr uint32_t kAgain = 77'777;
  for (const uint32_t others : {500, 1100, 5000}) {
    Records records;
    uint32_t tsc = 1000;
    records.push_back(Rec(kRunnableToRunning, tsc, {Vcpu(1, 0)}));
    AddCpuid(kAgain, tsc, records);
    AddCpuid(0, tsc, records);
    const Tsc begin{tsc + 5};
    for (uint32_t leaf = 0; leaf < others; ++leaf) AddCpuid(leaf, tsc, records);
    AddCpuid(kAgain, tsc, records);
    AddCpuid(0, tsc, records);
    records.push_back(Rec(kRunningToRunnable, tsc + 10, {Vcpu(1, 0)}));
    TraceBuilder trace;
    for (const auto& record : records) trace.Window(0, {record});
    const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const AnalysisResult whole = Analysed(*file, {});
    const AnalysisResult divided = Analysed(*file, {{begin, std::nullopt}});
    EXPECT_EQ(divided.partitions_repeated, 0U);
    EXPECT_TRUE(divided.document == whole.document) << others;
  }
}

}  // namespace
}  // namespace xenoscope::analysis
