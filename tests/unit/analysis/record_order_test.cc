// The order of records that analyses get: the results are those of the order of time, whatever
// contradictions the trace has.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using trace::kIdle;
using trace::kSchedDomRem;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kPcpus = 4;

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

// Makes traces of random records: no two at one instant, changes of runstate that contradict others
// as often as not, vCPUs on several pCPUs at once, ends of domains, losses. Idle vCPUs, which do
// not write cr3, run in every other one.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : has_idle_(seed % 2 == 0), random_(seed) {
    std::array<std::vector<std::vector<uint32_t>>, kPcpus> records;
    for (int i = 0; i < 1500; ++i) {
      tsc_ += 2 + 2 * Below(15);
      const uint32_t pcpu = Below(kPcpus);
      Add(pcpu, records[pcpu]);
      if (records[pcpu].size() > 20 + Below(200)) {
        trace_.Window(pcpu, std::exchange(records[pcpu], {}));
      }
    }
    for (uint32_t pcpu = 0; pcpu < kPcpus; ++pcpu) trace_.Window(pcpu, records[pcpu]);
  }
  const TraceBuilder& trace() const { return trace_; }

 private:
  uint32_t Below(uint32_t limit) { return std::uniform_int_distribution(0U, limit - 1)(random_); }
  uint32_t SomeVcpu(uint32_t pcpu) {
    return has_idle_ && Below(4) == 0 ? Vcpu(kIdle, pcpu) : Vcpu(1 + Below(3), Below(2));
  }
  void Add(uint32_t pcpu, std::vector<std::vector<uint32_t>>& to) {
    constexpr std::array kChanges = {kRunnableToRunning, kRunnableToRunning, kRunningToRunnable,
                                     kRunningToBlocked, kBlockedToRunnable};
    switch (Below(16)) {
      case 0:
      case 1:
      case 2:
        return to.push_back(Rec(kChanges[Below(kChanges.size())], tsc_, {SomeVcpu(pcpu)}));
      case 3:
        return to.push_back(Rec(kContinueRunning, tsc_, {SomeVcpu(pcpu)}));
      case 4:
        if (Below(20) == 0) return to.push_back(Rec(kSchedDomRem, tsc_, {1 + Below(3)}));
        if (Below(20) == 0) {
          const uint32_t first = tsc_ - 1 - 2 * Below(10);  // at no other record's instant
          return to.push_back(
              Rec(kLostRecords, tsc_, {7, 1 + Below(3) + (Below(2) << 16), first, 0}));
        }
        [[fallthrough]];
      case 5:
        return to.push_back(Rec(kHypercall, tsc_, {1 + Below(40)}));
      case 6:
        return to.push_back(Rec(kInjVirq, tsc_, {0x30 + Below(3), 0}));
      case 7:
      case 8:
      case 9:
        to.push_back(Rec(kVmexit, tsc_, {kVmxCpuid + Below(3), Below(4) * 16, 0}));
        return to.push_back(Rec(kCpuid, {Below(3), 0, 0, 0, 0, 0}));
      case 10:
        to.push_back(Rec(kVmexit, tsc_, {kVmxCrAccess, 0, 0}));
        return to.push_back(has_idle_ ? Rec(kHlt, {0}) : Rec(kCrWrite, {3, Below(3) << 12, 0}));
      case 11:
        return to.push_back(Rec(kSchedWake, tsc_, {1 + Below(3), Below(2)}));
      case 12:
        return to.push_back(Rec(kDecreaseReservation, tsc_, {1, 0, 1 + Below(3)}));
      default:
        return to.push_back(Rec(kVmentry, tsc_, {}));
    }
  }

  bool has_idle_;
  std::mt19937 random_;
  uint32_t tsc_ = 1000;
  TraceBuilder trace_;
};

TEST(RecordOrder, CrossingOrderGivesResultsOfTimeOrder) {
  uint64_t ran_twice = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const std::vector<Tsc> instants = InstantsOf(*file);
    for (const std::vector<PartitionBegin>& begins :
         {std::vector<PartitionBegin>{},
          std::vector<PartitionBegin>{{instants[instants.size() / 2], instants[0]}}}) {
      const auto in_time = AnalysePartitions(*file, {}, AllInOrderOfTime, begins);
      const auto crossing = AnalysePartitions(*file, {}, AllAnalyses, begins);
      ASSERT_TRUE(in_time.ok()) << in_time.status();
      ASSERT_TRUE(crossing.ok()) << crossing.status();
      EXPECT_TRUE(crossing->document == in_time->document) << "seed " << seed;
      EXPECT_EQ(crossing->trace.records, in_time->trace.records);
      EXPECT_EQ(crossing->trace.last, in_time->trace.last);
      const correlate::TimelineFaults& faults = crossing->trace.faults;
      const correlate::TimelineFaults& expected = in_time->trace.faults;
      EXPECT_EQ(faults.runstate_mismatches, expected.runstate_mismatches);
      EXPECT_EQ(faults.exits_without_vcpu, expected.exits_without_vcpu);
      EXPECT_EQ(faults.exits_without_entry, expected.exits_without_entry);
      ran_twice += expected.ran_twice;
    }
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
