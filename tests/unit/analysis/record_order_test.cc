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
  EXPECT_EQ(faults.mismatches.Ranges(), in_time.mismatches.Ranges());
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
    const auto in_time = AnalyseDivision(*file, {}, AllInOrderOfTime, PartitionAtEach(begins));
    EXPECT_TRUE(in_time.ok()) << in_time.status();
    ran_twice += in_time->trace.faults.ran_twice;
    for (const uint64_t window_bytes : windows) {
      SCOPED_TRACE(testing::Message() << "windows of " << window_bytes << " bytes");
      const auto in_groups =
          AnalyseDivision(*file, {}, AllAnalyses, PartitionAtEach(begins), window_bytes);
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

}  // namespace
}  // namespace xenoscope::analysis
