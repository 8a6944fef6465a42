#include "guests/threads/critical_path.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;

// "7 sleeping 10-20", with a mark for each wait that it is part of; states without Xen's trace.
std::vector<std::string> PathOf(RecordedKernel& kernel, uint32_t tid, TscRange range) {
  ThreadStates states(kernel.Open(), EventClock::Fixed(0));
  PathFinder finder(range);
  states.SetObserver(&finder);
  EXPECT_TRUE(FollowThreads({&states, 1}, nullptr).ok());
  size_t thread = 0;
  while (states.threads()[thread].tid != tid) ++thread;
  const auto path = finder.Find({kDom0, thread});
  EXPECT_TRUE(path.ok()) << path.status();
  std::vector<std::string> lines;
  Tsc at = range.begin;
  for (const PathStep& step : *path) {
    EXPECT_EQ(step.range.begin, at);
    at = step.range.end;
    const char* state = "waits";
    if (IsOnVcpu(step.state)) state = "runs";
    if (step.state == ThreadState::kSleeping) state = "sleeps";
    const std::string name = step.of.thread == Culprit::kNoThread
                                 ? "-"
                                 : fmt::format("{}", states.threads()[step.of.thread].tid);
    lines.push_back(fmt::format("{}{} {} {}-{}", std::string(step.depth, '>'), name, state,
                                step.range.begin.value, step.range.end.value));
  }
  EXPECT_EQ(at, range.end);
  return lines;
}

// 7 asks 8, which asks the disk, in the end woken by an interrupt.
TEST(PathFinder, ASleepIsWhatTheWakerDid) {
  RecordedKernel kernel;
  kernel.Page(0, PageBuilder(0)
                     .Switch(0, 0, 0, 7, "web")
                     .Waking(100, 7, 8, "db")           // 100
                     .Switch(20, 7, kSleep, 8, "db")    // 120
                     .Switch(50, 8, kSleep, 0, "idle")  // 170
                     .Waking(30, 0, 8, "db")            // 200
                     .Switch(10, 0, 0, 8, "db")         // 210
                     .Waking(40, 8, 7, "web")           // 250
                     .Switch(10, 8, kSleep, 7, "web")   // 260
                     .Switch(40, 7, kSleep, 0, "idle")  // 300
                     .Page());
  // The idle thread is on the CPU when the disk's interrupt wakes 8: it is not followed.
  EXPECT_THAT(
      PathOf(kernel, 7, {Tsc{50}, Tsc{300}}),
      ElementsAre("7 runs 50-120", ">8 runs 120-170", ">8 sleeps 170-200", ">8 waits 200-210",
                  ">8 runs 210-250", "7 waits 250-260", "7 runs 260-300"));
}

TEST(PathFinder, ASleepWithoutAnEndIsASleep) {
  RecordedKernel kernel;
  kernel.Page(0, PageBuilder(0)
                     .Switch(0, 0, 0, 7, "web")
                     .Switch(100, 7, kSleep, 8, "db")  // 100
                     .Waking(100, 8, 7, "web")         // 200
                     .Switch(50, 8, kSleep, 7, "web")  // 250
                     .Switch(50, 7, kSleep, 8, "db")   // 300
                     .Page());
  EXPECT_THAT(PathOf(kernel, 7, {Tsc{50}, Tsc{150}}),
              ElementsAre("7 runs 50-100", "7 sleeps 100-150"));
}

TEST(PathFinder, TimeBesideTheEventsIsUnknown) {
  RecordedKernel kernel;
  kernel.Page(0,
              PageBuilder(100).Switch(0, 0, 0, 7, "web").Switch(50, 7, kSleep, 0, "idle").Page());
  EXPECT_THAT(PathOf(kernel, 7, {Tsc{50}, Tsc{200}}),
              ElementsAre("- waits 50-100", "7 runs 100-150", "- waits 150-200"));
}

// Two threads that wake each other again and again, in one range: the path has an end.
TEST(PathFinder, EndsWhereThreadsWakeEachOther) {
  RecordedKernel kernel;
  PageBuilder page(0);
  page.Switch(0, 0, 0, 7, "a");
  for (int i = 0; i < 10; ++i) {
    page.Waking(1, 7, 8, "b").Switch(1, 7, kSleep, 8, "b");
    page.Waking(1, 8, 7, "a").Switch(1, 8, kSleep, 7, "a");
  }
  kernel.Page(0, page.Page());
  EXPECT_FALSE(PathOf(kernel, 7, {Tsc{0}, Tsc{40}}).empty());
}

// d1's thread 7 sleeps until dom0's thread 5 sends an event, which wakes d1's vCPU. If dom0 made
// another hypercall instead, who woke it is not known.
TEST(PathFinder, GoesOnInTheDomainThatSentTheEvent) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  constexpr DomainId kD1{1};
  constexpr uint32_t kD0V0 = 0;
  constexpr uint32_t kSchedOp = 29;
  constexpr uint32_t kEventChannelOp = 32;
  for (const uint32_t call : {kEventChannelOp, kSchedOp}) {
    RecordedKernel dom0;
    dom0.Page(0, PageBuilder(1050).Switch(0, 0, 0, 5, "vif").Switch(1950, 5, 1, 0, "").Page());
    RecordedKernel guest(kD1);
    guest.Page(0, PageBuilder(1100)
                      .Switch(0, 0, 0, 7, "web")
                      .Switch(300, 7, kSleep, 0, "")  // 1400
                      .Waking(800, 0, 7, "web")       // 2200, by the event's interrupt
                      .Switch(50, 0, 0, 7, "web")     // 2250
                      .Switch(150, 7, kSleep, 0, "")  // 2400
                      .Page());
    TraceBuilder bytes;
    bytes.Window(0, {Rec(kRunnableToRunning, 1000, {kD0V0}), Rec(kPvHypercallV2, 2000, {call}),
                     Rec(kBlockedToRunnable, 2050, {kD1V0})});
    bytes.Window(1,
                 {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToBlocked, 1500, {kD1V0}),
                  Rec(kRunnableToRunning, 2100, {kD1V0}), Rec(kRunningToBlocked, 2500, {kD1V0})});
    const auto xen = TraceFile::FromBytes(bytes.bytes(), "test");
    ASSERT_TRUE(xen.ok()) << xen.status();
    std::vector<ThreadStates> domains;
    domains.emplace_back(dom0.Open(), EventClock::Fixed(0));
    domains.emplace_back(guest.Open(), EventClock::Fixed(0));
    PathFinder finder({Tsc{1100}, Tsc{2400}});
    for (ThreadStates& domain : domains) domain.SetObserver(&finder);
    ASSERT_TRUE(FollowThreads(domains, &*xen).ok());
    size_t web = 0;
    while (domains[1].threads()[web].tid != 7) ++web;
    const auto path = finder.Find({kD1, web});
    ASSERT_TRUE(path.ok()) << path.status();
    std::vector<std::string> lines;
    for (const PathStep& step : *path) {
      const ThreadStates& domain = domains[step.of.domain == kD1 ? 1 : 0];
      lines.push_back(fmt::format("{} {} {}", domain.threads()[step.of.thread].tid,
                                  step.range.begin.value, static_cast<int>(step.state)));
    }
    const auto guest_runs = static_cast<int>(ThreadState::kGuest);
    const auto sleeps = static_cast<int>(ThreadState::kSleeping);
    const auto woken = static_cast<int>(ThreadState::kWoken);
    std::vector<std::string> expected{fmt::format("7 1100 {}", guest_runs)};
    if (call == kEventChannelOp) {
      expected.push_back(fmt::format("5 1400 {}", guest_runs));
      expected.push_back(fmt::format("7 2050 {}", sleeps));
    } else {
      expected.push_back(fmt::format("7 1400 {}", sleeps));
    }
    expected.push_back(fmt::format("7 2200 {}", woken));
    expected.push_back(fmt::format("7 2250 {}", guest_runs));
    EXPECT_EQ(lines, expected);
  }
}

TEST(PathFinder, RefusesMoreThanItKeeps) {
  PathFinder finder({Tsc{0}, Tsc{~uint64_t{0}}});
  for (uint64_t i = 0; i <= PathFinder::kMaxIntervals; ++i) {
    finder.OnWakeup({kDom0, 0, 1, Tsc{i}});
  }
  EXPECT_EQ(finder.Find({kDom0, 1}).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace xenoscope::guests
