#include "guests/threads/thread_switches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "trace/ordered_stream.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;

ThreadSwitches SwitchesOf(RecordedKernel& kernel) {
  std::vector<ThreadStates> domains;
  domains.emplace_back(kernel.Open(), EventClock::Fixed(0));
  return ThreadSwitches(std::move(domains));
}

// "v0 10 web (7)", a line a switch.
std::vector<std::string> LinesUntil(ThreadSwitches& threads, Tsc until) {
  std::vector<std::string> lines;
  while (const auto change = threads.Next(until)) {
    const uint32_t thread = threads.IdentityOf(change->thread).thread;
    lines.push_back(fmt::format("v{} {} {}", change->vcpu.vcpu.value, change->at.value,
                                thread == 0 ? "?" : threads.ThreadName(thread)));
  }
  return lines;
}

TEST(ThreadSwitches, ComeInTheOrderOfTime) {
  RecordedKernel kernel;
  kernel.Page(0, PageBuilder(0).Switch(10, 7, kSleep, 0, "x").Switch(90, 0, 0, 7, "web").Page())
      .Page(1, PageBuilder(0).Waking(30, 8, 7, "web").Switch(20, 8, kSleep, 0, "x").Page());
  ThreadSwitches threads = SwitchesOf(kernel);
  EXPECT_THAT(LinesUntil(threads, Tsc{50}), ElementsAre("v0 10 [idle]", "v1 10  (8)"));
  EXPECT_THAT(LinesUntil(threads, trace::OrderedStream::kEnd),
              ElementsAre("v1 50 [idle]", "v0 100 web (7)"));
  EXPECT_FALSE(threads.Next(trace::OrderedStream::kEnd));
}

TEST(ThreadSwitches, AreOfNoThreadFromTheLastEventBeforeALoss) {
  RecordedKernel kernel;
  kernel.Page(0, PageBuilder(0).Switch(5, 0, 0, 7, "web").Waking(5, 7, 9, "x").Page())
      .Page(0, PageBuilder(1000).Waking(0, 7, 9, "x").Page(/*is_lossy=*/true, /*lost=*/5));
  ThreadSwitches threads = SwitchesOf(kernel);
  EXPECT_THAT(LinesUntil(threads, trace::OrderedStream::kEnd),
              ElementsAre("v0 5 web (7)", "v0 10 ?", "v0 1000 web (7)"));
}

TEST(ThreadSwitches, KnowProcessesAndContainers) {
  RecordedKernel kernel;
  kernel.Thread(5, 5, "nginx", "/lxc.payload.shop/init.scope")
      .Thread(5, 6, "worker", "")
      .Page(0, PageBuilder(0)
                   .Switch(1, 0, 0, 6, "worker")
                   .Switch(1, 6, kSleep, 5, "nginx")
                   .Switch(1, 5, kSleep, 9, "other")
                   .Page());
  ThreadSwitches threads = SwitchesOf(kernel);
  std::vector<std::string> lines;
  while (const auto change = threads.Next(trace::OrderedStream::kEnd)) {
    const correlate::ThreadIdentity identity = threads.IdentityOf(change->thread);
    lines.push_back(fmt::format("{}, {}, {}, {}", threads.ThreadName(identity.thread),
                                threads.ProcessName(identity.process),
                                threads.ContainerName(identity.container), identity.pid));
  }
  EXPECT_THAT(lines, ElementsAre("worker (6), nginx (5), shop, 5", "nginx (5), nginx (5), shop, 5",
                                 "other (9), other, , 0"));
}

}  // namespace
}  // namespace xenoscope::guests
