// The order of records that analyses get: the results are those of the order of time, whatever
// contradictions the trace has.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "correlate/pcpu_groups.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using trace::Rec;
using trace::TraceBuilder;

// Asks for the order of time, and counts nothing.
class TimeOrder final : public Mergeable<TimeOrder> {
 public:
  void Subscribe(Subscriptions& /*subscriptions*/) const override {}
  trace::RecordOrder order() const override { return trace::RecordOrder::kTime; }
  std::vector<GroupInfo> Groups() const override { return {}; }
  void Merge(TimeOrder& /*earlier*/) {}
};

std::vector<std::unique_ptr<Analysis>> AllInOrderOfTime() {
  auto all = AllAnalyses();
  all.push_back(std::make_unique<TimeOrder>());
  return all;
}

void ExpectEqual(const AnalysisResult& result, const AnalysisResult& expected) {
  EXPECT_TRUE(result.document == expected.document);
  EXPECT_EQ(result.trace.records, expected.trace.records);
  EXPECT_EQ(result.trace.last, expected.trace.last);
  const correlate::TimelineFaults& faults = result.trace.faults;
  const correlate::TimelineFaults& in_time = expected.trace.faults;
  EXPECT_EQ(faults.runstate_mismatches, in_time.runstate_mismatches);
  EXPECT_EQ(faults.first_mismatch_offset, in_time.first_mismatch_offset);
  EXPECT_EQ(faults.mismatches, in_time.mismatches);
  EXPECT_EQ(faults.ran_twice, in_time.ran_twice);
  EXPECT_EQ(faults.exits_without_vcpu, in_time.exits_without_vcpu);
  EXPECT_EQ(faults.exits_without_entry, in_time.exits_without_entry);
}

// Expects all figures of the order of time, with windows of so many bytes of a pCPU; returns how
// often a vCPU ran twice there.
uint64_t ExpectResultsOfTimeOrder(const RandomTrace& random,
                                  std::initializer_list<uint64_t> windows) {
  const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  const std::vector<Tsc> instants = InstantsOf(*file);
  uint64_t ran_twice = 0;
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{},
        std::vector<PartitionBegin>{{instants[instants.size() / 2], instants[0]}}}) {
    const auto in_time = AnalysePartitions(*file, {}, AllInOrderOfTime, begins);
    EXPECT_TRUE(in_time.ok()) << in_time.status();
    ran_twice += in_time->trace.faults.ran_twice;
    for (const uint64_t window_bytes : windows) {
      SCOPED_TRACE(testing::Message() << "windows of " << window_bytes << " bytes");
      const auto in_groups = AnalysePartitions(*file, {}, AllAnalyses, begins, window_bytes);
      EXPECT_TRUE(in_groups.ok()) << in_groups.status();
      ExpectEqual(*in_groups, *in_time);
    }
  }
  return ran_twice;
}

TEST(RecordOrder, CrossingOrderGivesResultsOfTimeOrder) {
  uint64_t ran_twice = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    ran_twice += ExpectResultsOfTimeOrder(RandomTrace(seed), {correlate::kGroupWindowBytes});
  }
  EXPECT_GT(ran_twice, 1000U) << "records must change vCPUs that run on other pCPUs";
}

TEST(RecordOrder, GroupsGiveResultsOfTimeOrder) {
  uint64_t ran_twice = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    ran_twice += ExpectResultsOfTimeOrder(RandomTrace(seed, 16), {50, 300, 2000});
  }
  EXPECT_GT(ran_twice, 1000U) << "records must change vCPUs that run on other pCPUs";
}

TEST(RecordOrder, SharedLimitGoesToWhoCameFirst) {
  // Six vCPUs, three on each of two pCPUs, each with 1000 leaves of CPUID: there is room for 4096
  // parts of exits, so that the last two vCPUs share the rest of it.
  constexpr uint32_t kLeaves = 1000;
  TraceBuilder trace;
  for (uint32_t pcpu = 0; pcpu < 2; ++pcpu) {
    std::vector<std::vector<uint32_t>> records;
    uint32_t tsc = 1000 + pcpu;
    for (uint32_t turn = 0; turn < 3; ++turn) {
      const uint32_t vcpu = Vcpu(1 + turn * 2 + pcpu, 0);
      records.push_back(Rec(kRunnableToRunning, tsc, {vcpu}));
      for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
        records.push_back(Rec(kVmexit, tsc += 10, {kVmxCpuid, 0, 0}));
        records.push_back(Rec(kCpuid, {leaf, 0, 0, 0, 0, 0}));
        records.push_back(Rec(kVmentry, tsc += 10, {}));
      }
      records.push_back(Rec(kRunningToRunnable, tsc += 10, {vcpu}));
    }
    trace.Window(pcpu, records);
  }
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto whole = AnalysePartitions(*file, {}, AllInOrderOfTime, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const size_t of_d5 = VcpuLines(*whole, 5, 0, "exits").size();
  EXPECT_LT(of_d5, kLeaves);
  EXPECT_LE(VcpuLines(*whole, 6, 0, "exits").size(), of_d5 + 1);
  for (const std::vector<PartitionBegin>& begins :
       {std::vector<PartitionBegin>{}, std::vector<PartitionBegin>{{Tsc{30'000}, std::nullopt}}}) {
    const auto crossing = AnalysePartitions(*file, {}, AllAnalyses, begins);
    ASSERT_TRUE(crossing.ok()) << crossing.status();
    EXPECT_TRUE(crossing->document == whole->document);
  }
}

}  // namespace
}  // namespace xenoscope::analysis
