#include "sampler/perf/perf_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/unit/sampler/fake_perf.h"

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PerfCountersTest : public ::testing::Test {
 protected:
  absl::StatusOr<PerfCounters> Open(const std::string& events, CounterScope scope) {
    const std::vector<std::string> texts = {events};
    return PerfCounters::Open(*ParseEventSpecs(texts), scope, std::make_unique<FakePerf>(kernel_));
  }
  FakeKernel kernel_;
};

TEST_F(PerfCountersTest, CountsEachCpu) {
  kernel_.counters = true;
  auto counters = Open("cycles,page-faults", CounterScope::kCpus);
  ASSERT_TRUE(counters.ok()) << counters.status();
  kernel_.timed = {7, 100, 50};
  ASSERT_TRUE(counters->Enable(true).ok());
  const auto readings = counters->Read();
  ASSERT_TRUE(readings.ok());
  ASSERT_THAT(*readings, SizeIs(4));
  EXPECT_EQ(readings->at(3).event, 1U);
  EXPECT_EQ(readings->at(3).cpu, 1U);
  EXPECT_EQ(readings->at(3).count, 7U);
  EXPECT_EQ(readings->at(3).running_ns, 50U);
  for (const auto& [fd, opened] : kernel_.open) {
    EXPECT_EQ(opened.pid, -1);
    EXPECT_EQ(opened.attributes.sample_period, 0U);
    EXPECT_EQ(opened.attributes.freq, 0U);
    EXPECT_EQ(opened.attributes.inherit, 0U);
  }
}

TEST_F(PerfCountersTest, CommandsBeginWithTheirExec) {
  const auto counters = Open("task-clock", CounterScope::kChildren);
  ASSERT_TRUE(counters.ok()) << counters.status();
  ASSERT_THAT(kernel_.open, SizeIs(1));
  const FakeKernel::Opened& opened = kernel_.open.begin()->second;
  EXPECT_EQ(opened.pid, 0);
  EXPECT_EQ(opened.cpu, -1);
  EXPECT_EQ(opened.attributes.enable_on_exec, 1U);
  EXPECT_EQ(opened.attributes.inherit, 1U);
  EXPECT_FALSE(opened.enabled);
}

TEST_F(PerfCountersTest, ClosesItsFiles) {
  { const auto counters = Open("page-faults", CounterScope::kCpus); }
  EXPECT_TRUE(kernel_.open.empty());
}

TEST_F(PerfCountersTest, EventsThatNothingCountsHaveAnObstacle) {
  const auto counters = Open("page-faults,cycles", CounterScope::kCpus);
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_EQ(counters->events()[0].obstacle, "");
  EXPECT_THAT(counters->events()[1].obstacle, HasSubstr("cannot count it"));
  EXPECT_THAT(kernel_.open, SizeIs(2));
}

TEST_F(PerfCountersTest, UsersCountUserModeOfTheirOwn) {
  kernel_.may_count_kernel = false;
  const auto counters = Open("page-faults", CounterScope::kChildren);
  ASSERT_TRUE(counters.ok()) << counters.status();
  EXPECT_TRUE(counters->events()[0].user_only);
  EXPECT_TRUE(absl::IsPermissionDenied(Open("page-faults", CounterScope::kCpus).status()));
}

TEST_F(PerfCountersTest, GroupsHaveALeaderOnEachCpu) {
  kernel_.counters = true;
  const auto counters = Open("{cycles,instructions}", CounterScope::kCpus);
  ASSERT_TRUE(counters.ok()) << counters.status();
  for (const auto& [fd, opened] : kernel_.open) {
    if (opened.leader == PerfCalls::kNoLeader) continue;
    EXPECT_EQ(kernel_.open.at(opened.leader).cpu, opened.cpu);
    EXPECT_NE(opened.leader, fd);
  }
  EXPECT_THAT(kernel_.open, SizeIs(4));
}

TEST_F(PerfCountersTest, PvDomainsCountAllModes) {
  kernel_.counters = true;
  kernel_.is_pv = true;
  EXPECT_TRUE(Open("cycles", CounterScope::kCpus).ok());
  EXPECT_THAT(std::string(Message(Open("cycles:u", CounterScope::kCpus).status())),
              HasSubstr("do not tell user and kernel mode apart"));
  EXPECT_TRUE(Open("page-faults:u", CounterScope::kCpus).ok());
}

}  // namespace
}  // namespace xenoscope::sampler
