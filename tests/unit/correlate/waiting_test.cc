#include "correlate/waiting.h"

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

void Enter(Waiting& waiting, VcpuRef vcpu, RunState state, uint64_t at, PcpuId pcpu = kPcpu) {
  VcpuTrack track;
  track.ref = vcpu;
  track.state = state;
  track.since = Tsc{at};
  track.pcpu = pcpu;
  waiting.OnState(track);
}

// "10-20 d1v0", a line a part.
std::vector<std::string> Parts(const Waiting& waiting, TscRange range, PcpuId pcpu = kPcpu) {
  std::vector<std::string> parts;
  waiting.ForEach(pcpu, range, [&](TscRange part, uint32_t set) {
    std::string text = fmt::format("{}-{}", part.begin.value, part.end.value);
    for (const VcpuRef vcpu : waiting.sets().at(set)) text += " " + ToString(vcpu);
    parts.push_back(text);
  });
  return parts;
}

TEST(Waiting, DividesARangeWhereOneBeginsOrCeasesToWait) {
  Waiting waiting;
  Enter(waiting, kD2, RunState::kRunnable, 20);
  Enter(waiting, kD1, RunState::kRunnable, 30);
  Enter(waiting, kD2, RunState::kRunning, 40);
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{50}}),
              ElementsAre("10-20", "20-30 d2v0", "30-40 d1v0 d2v0", "40-50 d1v0"));
  EXPECT_THAT(Parts(waiting, {Tsc{32}, Tsc{35}}), ElementsAre("32-35 d1v0 d2v0"));
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{50}}, PcpuId{0}), ElementsAre("10-50"));
}

TEST(Waiting, WhoWaitedAtTheBeginningIsRememberedBeyondForget) {
  Waiting waiting;
  Enter(waiting, kD1, RunState::kRunnable, 20);
  Enter(waiting, kD2, RunState::kRunnable, 60);
  waiting.Forget(kPcpu, Tsc{50});
  EXPECT_THAT(Parts(waiting, {Tsc{50}, Tsc{70}}), ElementsAre("50-60 d1v0", "60-70 d1v0 d2v0"));
}

TEST(Waiting, OneThatIsWokenElsewhereDoesNotWaitHereAnyMore) {
  Waiting waiting;
  Enter(waiting, kD1, RunState::kRunnable, 20);
  Enter(waiting, kD1, RunState::kRunnable, 30, PcpuId{0});
  EXPECT_THAT(Parts(waiting, {Tsc{20}, Tsc{40}}), ElementsAre("20-30 d1v0", "30-40"));
  EXPECT_THAT(Parts(waiting, {Tsc{20}, Tsc{40}}, PcpuId{0}), ElementsAre("20-30", "30-40 d1v0"));
}

TEST(Waiting, IdleVcpusDoNotWait) {
  Waiting waiting;
  Enter(waiting, {kIdleDomain, VcpuId{3}}, RunState::kRunnable, 20);
  EXPECT_THAT(Parts(waiting, {Tsc{10}, Tsc{40}}), ElementsAre("10-40"));
}

TEST(Waiting, MoreSetsThanThereIsRoomForAreOthers) {
  Waiting waiting;
  for (uint32_t i = 0; i < 2 * Waiting::kMostSets; ++i) {
    const VcpuRef vcpu{DomainId{1}, VcpuId{i}};
    Enter(waiting, vcpu, RunState::kRunnable, i);
    if (i + 1 < 2 * Waiting::kMostSets) Enter(waiting, vcpu, RunState::kRunning, i);
  }
  EXPECT_EQ(waiting.sets().size(), Waiting::kMostSets);
  EXPECT_EQ(waiting.Now(kPcpu), Waiting::kOthers);
}

}  // namespace
}  // namespace xenoscope::correlate
