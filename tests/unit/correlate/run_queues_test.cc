#include "correlate/run_queues.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::correlate {
namespace {

using testing::ElementsAre;

constexpr VcpuRef kD1{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2{DomainId{2}, VcpuId{0}};
constexpr PcpuId kPcpu{3};

void Enter(RunQueues& waiting, VcpuRef vcpu, TimelineState state, uint64_t at,
           PcpuId pcpu = kPcpu) {
  VcpuTrack track;
  track.ref = vcpu;
  track.state = state;
  track.since = Tsc{at};
  track.pcpu = pcpu;
  waiting.OnState(track);
}

// "10-20 d1v0", a line a part.
std::vector<std::string> Parts(const RunQueues& waiting, TscRange range, PcpuId pcpu = kPcpu) {
  std::vector<std::string> parts;
  waiting.ForEach(pcpu, range, [&](TscRange part, uint32_t set) {
    std::string text = fmt::format("{}-{}", part.begin.value, part.end.value);
    for (const VcpuRef vcpu : waiting.sets().at(set)) text += " " + ToString(vcpu);
    parts.push_back(text);
  });
  return parts;
}

TEST(RunQueues, SplitsRangeAtQueueChanges) {
  RunQueues waiting;
  Enter(waiting, kD2, TimelineState::kRunnable, 20);
  Enter(waiting, kD1, TimelineState::kRunnable, 30);
  Enter(waiting, kD2, TimelineState::kRunning, 40);
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{50}}),
              ElementsAre("10-20", "20-30 d2v0", "30-40 d1v0 d2v0", "40-50 d1v0"));
  EXPECT_THAT(Parts(waiting, {Tsc{32}, Tsc{35}}), ElementsAre("32-35 d1v0 d2v0"));
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{50}}, PcpuId{0}), ElementsAre("10-50"));
}

TEST(RunQueues, ForgetKeepsQueueAtBegin) {
  RunQueues waiting;
  Enter(waiting, kD1, TimelineState::kRunnable, 20);
  Enter(waiting, kD2, TimelineState::kRunnable, 60);
  waiting.Forget(kPcpu, Tsc{50});
  EXPECT_THAT(Parts(waiting, {Tsc{50}, Tsc{70}}), ElementsAre("50-60 d1v0", "60-70 d1v0 d2v0"));
}

TEST(RunQueues, WakeupElsewhereLeavesQueue) {
  RunQueues waiting;
  Enter(waiting, kD1, TimelineState::kRunnable, 20);
  Enter(waiting, kD1, TimelineState::kRunnable, 30, PcpuId{0});
  EXPECT_THAT(Parts(waiting, {Tsc{20}, Tsc{40}}), ElementsAre("20-30 d1v0", "30-40"));
  EXPECT_THAT(Parts(waiting, {Tsc{20}, Tsc{40}}, PcpuId{0}), ElementsAre("20-30", "30-40 d1v0"));
}

TEST(RunQueues, IdleVcpusAreNotQueued) {
  RunQueues waiting;
  Enter(waiting, {kIdleDomain, VcpuId{3}}, TimelineState::kRunnable, 20);
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{40}}), ElementsAre("10-40"));
}

TEST(RunQueues, ExcessSetsAreOthers) {
  RunQueues waiting;
  for (uint32_t i = 0; i < 2 * RunQueues::kMaxSets; ++i) {
    const VcpuRef vcpu{DomainId{1}, VcpuId{i}};
    Enter(waiting, vcpu, TimelineState::kRunnable, i);
    if (i + 1 < 2 * RunQueues::kMaxSets) Enter(waiting, vcpu, TimelineState::kRunning, i);
  }
  EXPECT_EQ(waiting.sets().size(), RunQueues::kMaxSets);
  EXPECT_EQ(waiting.Now(kPcpu), RunQueues::kOthers);
}

}  // namespace
}  // namespace xenoscope::correlate
