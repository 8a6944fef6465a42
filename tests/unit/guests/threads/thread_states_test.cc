#include "guests/threads/thread_states.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/culprits.h"
#include "guests/threads/follow_threads.h"
#include "recording/sample_writer.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using recording::SampleWriter;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr uint64_t kDisk = 2;
constexpr uint64_t kPreempt = 0x100;
constexpr uint64_t kZombie = 0x20;

// "8 stolen 60 by Xen: d1 22", a line a wait; culprits without a thread have "-".
std::vector<std::string> WaitsOf(const ThreadStates& states,
                                 std::span<const ThreadStates> domains) {
  constexpr const char* kStates[] = {"stolen", "woken", "preempted"};
  std::vector<std::string> lines;
  for (const Wait& wait : states.Waits()) {
    std::string by = "-";
    for (const ThreadStates& domain : domains) {
      if (domain.domain() != wait.by.domain || wait.by.thread == Culprit::kNoThread) continue;
      by = fmt::format("{}", domain.threads()[wait.by.thread].tid);
    }
    lines.push_back(fmt::format("{} {} {} by {}: d{} {}", states.threads()[wait.thread].tid,
                                kStates[static_cast<size_t>(wait.state)], wait.time,
                                wait.scheduler == Scheduler::kXen ? "Xen" : "kernel",
                                wait.by.domain.value, by));
  }
  return lines;
}

// Kernels' events as a recording has them, followed to the end.
class Followed {
 public:
  Followed& Thread(uint32_t pid, uint32_t tid, const std::string& name) {
    kernel_.Thread(pid, tid, name);
    return *this;
  }
  Followed& Page(uint32_t cpu, const std::vector<std::byte>& page) {
    kernel_.Page(cpu, page);
    return *this;
  }
  Followed& Run(const trace::TraceFile* xen = nullptr) {
    states_.emplace(kernel_.Open(), EventClock::Fixed(0));
    const auto unread = FollowThreads({&*states_, 1}, xen);
    EXPECT_TRUE(unread.ok()) << unread.status();
    unread_ = unread.value_or(trace::UnreadCounts());
    return *this;
  }
  Followed& Run(const trace::TraceBuilder& bytes) {
    const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
    EXPECT_TRUE(xen.ok()) << xen.status();
    return xen.ok() ? Run(&*xen) : *this;
  }
  const GuestThread& Of(uint32_t tid) const {
    for (const GuestThread& thread : states_->threads()) {
      if (thread.tid == tid) return thread;
    }
    ADD_FAILURE() << "no thread " << tid;
    return states_->threads().front();
  }
  Cycles Time(uint32_t tid, ThreadState state) const {
    return Of(tid).times[static_cast<size_t>(state)];
  }
  const ThreadStates& states() const { return *states_; }
  const trace::UnreadCounts& unread() const { return unread_; }
  std::vector<std::string> Waits() const { return WaitsOf(*states_, {&*states_, 1}); }

 private:
  RecordedKernel kernel_;
  trace::UnreadCounts unread_;
  std::optional<ThreadStates> states_;
};

TEST(ThreadStates, ASwitchEndsOneThreadsTimeAndBeginsAnothers) {
  Followed threads;
  threads
      .Page(0, PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(100, 7, kSleep, 8, "db")
                   .Switch(30, 8, kDisk, 0, "swapper/0")
                   .Waking(50, 0, 7, "web")
                   .Switch(5, 0, 0, 7, "web")
                   .Switch(40, 7, kPreempt, 8, "db")
                   .Switch(10, 8, kSleep, 7, "web")
                   .Page())
      .Run();
  EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 140U);
  EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), 80U);
  EXPECT_EQ(threads.Time(7, ThreadState::kWoken), 5U);
  EXPECT_EQ(threads.Time(7, ThreadState::kPreempted), 10U);
  EXPECT_EQ(threads.Time(8, ThreadState::kUntraced), 40U);
  EXPECT_EQ(threads.Time(8, ThreadState::kUninterruptible), 95U);
  EXPECT_EQ(threads.Time(0, ThreadState::kUntraced), 55U);
  EXPECT_EQ(threads.Time(0, ThreadState::kPreempted), 0U);  // the idle thread waits for nothing
  EXPECT_EQ(threads.Of(7).switches, 3U);
  EXPECT_EQ(threads.Of(7).preempted, 1U);
  EXPECT_EQ(threads.states().vcpus()[0].window.Length(), 235U);
}

// The kernel may preempt it once more before it leaves for good.
TEST(ThreadStates, AThreadThatEndsMayBePreempted) {
  Followed threads;
  threads
      .Page(0, PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .Exit(100, 7)
                   .Switch(20, 7, kPreempt, 8, "db")
                   .Switch(40, 8, kSleep, 7, "web")
                   .Switch(5, 7, kZombie, 8, "db")
                   .Switch(200, 8, kSleep, 0, "swapper/0")
                   .Page())
      .Run();
  EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 125U);
  EXPECT_EQ(threads.Time(7, ThreadState::kPreempted), 40U);
  EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), 0U);
}

TEST(ThreadStates, EventsOfCpusAreTakenInTheOrderOfTime) {
  Followed threads;
  threads.Page(0, PageBuilder(0).Switch(10, 7, kSleep, 0, "idle").Switch(90, 0, 0, 9, "x").Page())
      .Page(1, PageBuilder(0).Waking(30, 8, 7, "web").Switch(20, 8, kSleep, 7, "web").Page())
      .Run();
  EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), 20U);
  EXPECT_EQ(threads.Time(7, ThreadState::kWoken), 20U);
  EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 50U);
  // The first event of CPU 1 says who has run there since the other CPU's first event.
  EXPECT_EQ(threads.Time(8, ThreadState::kUntraced), 40U);
  EXPECT_EQ(threads.states().vcpus()[1].window, (TscRange{Tsc{10}, Tsc{100}}));
}

TEST(ThreadStates, AFirstEventAfterALossSaysNothingOfTheTimeBefore) {
  Followed threads;
  threads.Page(0, PageBuilder(0).Switch(10, 7, kSleep, 0, "idle").Switch(90, 0, 0, 9, "x").Page())
      .Page(1, PageBuilder(0).Switch(50, 8, kSleep, 7, "web").Page(/*is_lossy=*/true, /*lost=*/5))
      .Run();
  EXPECT_EQ(threads.Time(8, ThreadState::kUntraced), 0U);
  EXPECT_EQ(threads.states().vcpus()[1].times[static_cast<size_t>(ThreadState::kLost)], 40U);
}

TEST(ThreadStates, ASwitchWithoutAnEventMakesTheTimeAroundItLost) {
  struct {
    const char* what;
    uint32_t woken_by_other_cpu;  // at this time; 0: by the CPU itself, at 50
    Cycles sleeping, woken, lost;
  } const cases[] = {{"woken by the last event before", 0, 50, 0, 20},
                     {"woken before it", 40, 40, 10, 20},
                     {"woken since", 60, 60, 0, 10}};
  for (const auto& test : cases) {
    SCOPED_TRACE(test.what);
    Followed threads;
    PageBuilder page(1000);
    page.Switch(0, 7, kSleep, 0, "idle");
    // Without an event from here on, the thread 7 comes back.
    test.woken_by_other_cpu == 0 ? page.Waking(50, 0, 7, "web") : page.Waking(50, 0, 9, "log");
    page.Switch(20, 7, kSleep, 0, "idle").Waking(30, 0, 9, "log");
    threads.Page(0, page.Page());
    if (test.woken_by_other_cpu != 0) {
      threads.Page(1, PageBuilder(1000).Waking(test.woken_by_other_cpu, 8, 7, "web").Page());
    }
    threads.Run();
    EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), test.sleeping + 30);  // and after it left
    EXPECT_EQ(threads.Time(7, ThreadState::kWoken), test.woken);
    EXPECT_EQ(threads.Time(7, ThreadState::kLost), test.lost);
    EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 0U);
    EXPECT_EQ(threads.states().vcpus()[0].times[static_cast<size_t>(ThreadState::kLost)], 20U);
    EXPECT_EQ(threads.states().missed_switches(), 1U);
  }
}

TEST(ThreadStates, AThreadIsOnOneCpuAtATime) {
  Followed threads;  // what took 7 from CPU 0, and what brought it back, has no event
  threads.Page(0, PageBuilder(0).Switch(0, 0, 0, 7, "web").Waking(100, 7, 9, "log").Page())
      .Page(1, PageBuilder(0).Switch(20, 0, 0, 7, "web").Switch(30, 7, kSleep, 0, "idle").Page())
      .Run();
  EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 30U);
  // It may have left CPU 0 at any time before 20, and have come back at any time since 50.
  EXPECT_EQ(threads.Time(7, ThreadState::kLost), 20U + 50U);
  EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), 0U);
  EXPECT_EQ(threads.states().vcpus()[0].times[static_cast<size_t>(ThreadState::kLost)], 100U);
  EXPECT_EQ(threads.states().missed_switches(), 1U);
}

TEST(ThreadStates, WhatALossHidesIsLost) {
  Followed threads;
  threads.Page(0, PageBuilder(0).Switch(0, 0, 0, 7, "web").Switch(10, 7, kSleep, 8, "db").Page())
      .Page(0, PageBuilder(1000)
                   .Waking(0, 9, 7, "web")
                   .Switch(100, 9, kSleep, 7, "web")
                   .Page(/*is_lossy=*/true, /*lost=*/5))
      .Run();
  EXPECT_EQ(threads.states().vcpus()[0].times[static_cast<size_t>(ThreadState::kLost)], 990U);
  EXPECT_EQ(threads.Time(7, ThreadState::kLost), 990U);  // it may have run meanwhile
  EXPECT_EQ(threads.Time(7, ThreadState::kSleeping), 0U);
  EXPECT_EQ(threads.Time(7, ThreadState::kWoken), 100U);
  EXPECT_EQ(threads.Time(8, ThreadState::kUntraced), 0U);
  EXPECT_EQ(threads.Time(9, ThreadState::kUntraced), 100U);
}

TEST(ThreadStates, ThreadsAreThoseOfTheirProcesses) {
  Followed threads;
  threads.Thread(5, 5, "nginx").Thread(5, 6, "worker");
  threads.Page(0, PageBuilder(0).Switch(0, 0, 0, 6, "worker").Switch(9, 6, 1, 0, "i").Page()).Run();
  const GuestThread& worker = threads.Of(6);
  EXPECT_EQ(threads.states().processes()[worker.process].name, "nginx");
  EXPECT_EQ(threads.states().processes()[worker.process].pid, 5U);
}

// Dom0's vCPU 0 runs [0, 100), waits until 160 while a guest runs, runs until 200, is blocked until
// 260, and is woken then.
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  const uint32_t dom0 = Vcpu(0, 0);
  const uint32_t idle = Vcpu(kIdle, 0);
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 0, {dom0}), Rec(kRunningToRunnable, 100, {dom0}),
                 Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kRunningToBlocked, 160, {kD1V0}),
                 Rec(kRunnableToRunning, 160, {dom0}), Rec(kRunningToBlocked, 200, {dom0}),
                 Rec(kRunnableToRunning, 200, {idle}), Rec(kBlockedToRunnable, 260, {dom0}),
                 Rec(kRunningToRunnable, 262, {idle}), Rec(kRunnableToRunning, 262, {dom0}),
                 Rec(kRunningToRunnable, 400, {dom0})});
  return xen;
}

TEST(FollowThreads, DividesAThreadsTimeByWhatXenDidWithItsVcpu) {
  Followed threads;
  threads
      .Page(0, PageBuilder(10)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(70, 7, kSleep, 8, "db")    // 80
                   .Switch(90, 8, kSleep, 0, "idle")  // 170
                   .Switch(100, 0, 0, 7, "web")       // 270
                   .Switch(50, 7, kSleep, 0, "idle")  // 320
                   .Page())
      .Run(Xen());
  EXPECT_EQ(threads.Time(7, ThreadState::kGuest), 70U + 50U);
  EXPECT_EQ(threads.Time(8, ThreadState::kGuest), 20U + 10U);
  EXPECT_EQ(threads.Time(8, ThreadState::kStolen), 60U);
  EXPECT_EQ(threads.Time(0, ThreadState::kGuest), 30U + 8U);
  EXPECT_EQ(threads.Time(0, ThreadState::kHalted), 60U);
  EXPECT_EQ(threads.Time(0, ThreadState::kStolen), 2U);
  EXPECT_EQ(threads.states().vcpus()[0].window.Length(), 310U);
  // The idle vCPU's 2 cycles are nobody's.
  EXPECT_THAT(threads.Waits(), ElementsAre("8 stolen 60 by Xen: d1 -"));
}

// While a thread waits in its kernel's run queue, its vCPU may run another one, or wait itself.
TEST(FollowThreads, WaitsInTheKernelsQueueHaveCulpritsOfBothSchedulers) {
  Followed threads;
  threads
      .Page(0, PageBuilder(10)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(40, 7, kPreempt, 8, "db")  // 50
                   .Switch(120, 8, kSleep, 7, "web")  // 170
                   .Switch(10, 7, kSleep, 0, "idle")  // 180
                   .Waking(85, 0, 7, "web")           // 265
                   .Switch(5, 0, 0, 7, "web")         // 270
                   .Page())
      .Run(Xen());
  EXPECT_EQ(threads.Time(7, ThreadState::kPreempted), 120U);
  EXPECT_THAT(threads.Waits(),
              UnorderedElementsAre("8 stolen 60 by Xen: d1 -", "7 preempted 60 by kernel: d0 8",
                                   "7 preempted 60 by Xen: d1 -", "7 woken 5 by kernel: d0 0"));
}

// d1v0 runs [100, 160) while dom0's vCPU waits; its kernel puts another thread on it at 130.
TEST(FollowThreads, CulpritsAreThreadsOfTheDomainThatRan) {
  const trace::TraceBuilder bytes = Xen();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  RecordedKernel dom0;
  dom0.Page(0, PageBuilder(10).Switch(0, 0, 0, 8, "db").Switch(160, 8, 1, 0, "idle").Page());
  RecordedKernel guest(DomainId{1});
  guest.Page(0, PageBuilder(105)
                    .Switch(0, 0, 0, 21, "a")
                    .Switch(25, 21, 1, 22, "b")
                    .Waking(25, 22, 21, "a")
                    .Page());
  std::vector<ThreadStates> domains;
  domains.emplace_back(dom0.Open(), EventClock::Fixed(0));
  domains.emplace_back(guest.Open(), EventClock::Fixed(0));
  ASSERT_TRUE(FollowThreads(domains, &*xen).ok());
  EXPECT_THAT(WaitsOf(domains[0], domains),
              UnorderedElementsAre("8 stolen 5 by Xen: d1 -", "8 stolen 25 by Xen: d1 21",
                                   "8 stolen 30 by Xen: d1 22"));
}

// dom0's vCPU waits while d1v0 runs [103, 160), and is paused [140, 150) meanwhile, as by a poll.
TEST(FollowThreads, ATimeOfSwitchesIsXensAndAPauseHidesNoCulprit) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  const uint32_t dom0 = Vcpu(0, 0);
  TraceBuilder bytes;
  bytes.Window(0, {Rec(kRunnableToRunning, 0, {dom0}), Rec(kRunningToRunnable, 100, {dom0}),
                   Rec(kRunnableToRunning, 103, {kD1V0}), Rec(kRunnableToOffline, 140, {dom0}),
                   Rec(kOfflineToRunnable, 150, {dom0}), Rec(kRunningToBlocked, 160, {kD1V0}),
                   Rec(kRunnableToRunning, 162, {dom0}), Rec(kRunningToRunnable, 200, {dom0})});
  Followed threads;
  threads
      .Page(0, PageBuilder(10)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(40, 7, kPreempt, 8, "db")  // 50
                   .Switch(120, 8, kSleep, 7, "web")  // 170
                   .Page())
      .Run(bytes);
  EXPECT_EQ(threads.Time(8, ThreadState::kStolen), 52U);
  EXPECT_EQ(threads.Time(8, ThreadState::kHalted), 10U);
  const std::string by_xen = fmt::format("by Xen: d{} -", kDomXen.value);
  EXPECT_THAT(threads.Waits(),
              UnorderedElementsAre("8 stolen 47 by Xen: d1 -", "8 stolen 5 " + by_xen,
                                   "7 preempted 47 by Xen: d1 -", "7 preempted 5 " + by_xen,
                                   "7 preempted 68 by kernel: d0 8"));
}

// dom0's vCPU waits until 180. What the pCPU did from 140 on cannot be read, so nobody is blamed.
TEST(FollowThreads, WhatCouldNotBeReadHasNoCulprit) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  const uint32_t dom0 = Vcpu(0, 0);
  TraceBuilder bytes;
  bytes.Window(0, {Rec(kRunnableToRunning, 0, {dom0}), Rec(kRunningToRunnable, 100, {dom0}),
                   Rec(kRunnableToRunning, 103, {kD1V0}), Rec(kRunningToBlocked, 140, {kD1V0})});
  bytes.Window(0, {{0, 0, 0}, Rec(kRunnableToRunning, 180, {dom0})});
  Followed threads;
  threads.Page(0, PageBuilder(10).Switch(0, 0, 0, 8, "db").Switch(180, 8, kSleep, 0, "idle").Page())
      .Run(bytes);
  EXPECT_EQ(threads.unread().damages, 1U);
  EXPECT_EQ(threads.Time(8, ThreadState::kStolen), 80U);
  EXPECT_THAT(threads.Waits(),
              UnorderedElementsAre("8 stolen 37 by Xen: d1 -",
                                   fmt::format("8 stolen 3 by Xen: d{} -", kDomXen.value)));
}

TEST(ThreadStates, AMigratedThreadWaitsForItsNewCpu) {
  Followed threads;
  threads
      .Page(0, PageBuilder(0)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(10, 7, kPreempt, 8, "db")
                   .Waking(90, 8, 6, "x")
                   .Page())
      .Page(1, PageBuilder(0)
                   .Waking(1, 9, 6, "x")
                   .Migrate(29, 9, 7, 1)
                   .Switch(20, 9, kSleep, 7, "web")
                   .Page())
      .Run();
  EXPECT_EQ(threads.Time(7, ThreadState::kPreempted), 40U);
  EXPECT_EQ(threads.Of(7).migrations, 1U);
  // From 10 on CPU 0 ran db: that is known up to its next event only, which comes after 30.
  EXPECT_THAT(threads.Waits(), Contains("7 preempted 20 by kernel: d0 9"));
}

TEST(VcpuHistory, KnowsWhatRanWhileThreadsWait) {
  const Culprit a{DomainId{1}, 1};
  const Culprit b{DomainId{2}};
  VcpuHistory history;
  history.Ran(Tsc{5}, a);  // nobody waits
  history.Join(Tsc{10});
  history.Ran(Tsc{20}, a);
  history.Ran(Tsc{30}, a);
  history.Stolen({Tsc{0}, Tsc{35}}, b);
  history.Stolen({Tsc{38}, Tsc{60}}, b);
  history.Waited(Tsc{50});
  history.Skip(Tsc{55});
  history.Ran(Tsc{60}, b);
  std::vector<std::string> parts;
  const auto note = [&parts](TscRange part, Scheduler scheduler, Culprit by) {
    parts.push_back(fmt::format("{}-{} {} d{}", part.begin.value, part.end.value,
                                scheduler == Scheduler::kXen ? "Xen" : "kernel", by.domain.value));
  };
  history.ForEach({Tsc{15}, Tsc{58}}, note);
  EXPECT_THAT(parts,
              ElementsAre("15-30 kernel d1", "30-35 Xen d2", "38-50 Xen d2", "55-58 kernel d2"));
  history.Leave();
  parts.clear();
  history.ForEach({Tsc{0}, Tsc{100}}, note);
  EXPECT_THAT(parts, IsEmpty());
}

TEST(VcpuHistory, KeepsTheLatest) {
  VcpuHistory history;
  history.Join(Tsc{0});
  for (uint64_t i = 1; i <= VcpuHistory::kMaxEntries + 3; ++i) {
    history.Ran(Tsc{i}, {DomainId{static_cast<uint16_t>(i % 2)}});
  }
  Cycles known = 0;
  history.ForEach({Tsc{0}, Tsc{1 << 20}},
                  [&known](TscRange part, Scheduler, Culprit) { known += part.Length(); });
  EXPECT_EQ(known, VcpuHistory::kMaxEntries);
}

TEST(FollowThreads, SaysThatTimeBesideTheTraceIsUntraced) {
  Followed threads;
  threads
      .Page(0, PageBuilder(390).Switch(0, 0, 0, 7, "web").Switch(50, 7, kSleep, 0, "idle").Page())
      .Run(Xen());
  EXPECT_EQ(threads.Time(7, ThreadState::kGuest), 10U);
  EXPECT_EQ(threads.Time(7, ThreadState::kUntraced), 40U);
}

// Whatever the events say, Finish checks that vCPUs' and threads' times agree.
TEST(ThreadStates, TimesAddUpForEventsThatContradict) {
  Followed threads;
  threads.Page(0, PageBuilder(0).Switch(0, 1, 0, 7, "a").Switch(10, 9, kSleep, 7, "a").Page())
      .Page(1, PageBuilder(5).Switch(0, 2, 0, 7, "a").Switch(10, 7, kSleep, 7, "a").Page())
      .Page(1, PageBuilder(1).Switch(0, 7, 0, 7, "a").Switch(40, 8, 0, 0, "i").Page())
      .Run();
  EXPECT_EQ(threads.states().faults().disordered, 1U);
}

TEST(KernelTrace, RefusesPagesThatFormatsDoNotDescribe) {
  recording::FileHeader header;
  SampleWriter writer = SampleWriter::InMemory();
  writer.AppendTracePages({kDom0, VcpuId{0}}, {}, PageBuilder::kSize, PageBuilder(0).Page());
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> file(head.begin(), head.end());
  const auto chunks = writer.Take();
  file.insert(file.end(), chunks.begin(), chunks.end());
  EXPECT_TRUE(KernelTrace::Open(file, kDom0).ok());  // the default layout, and no event is known
  EXPECT_FALSE((*KernelTrace::Open(file, DomainId{1})).has_value());
  SampleWriter small = SampleWriter::InMemory();
  small.AppendTracePages({kDom0, VcpuId{0}}, {}, 512, PageBuilder(0).Page());
  std::vector<std::byte> other(head.begin(), head.end());
  const auto pages = small.Take();
  other.insert(other.end(), pages.begin(), pages.end());
  EXPECT_FALSE(KernelTrace::Open(other, kDom0).ok());
}

// "7: 10 20 calls 1 cut 0: untraced 5, sleeping 3", a line a path of calls.
std::vector<std::string> CallsOf(const ThreadStates& states) {
  const auto time = [](const StateTimes& times, ThreadState state) {
    return times[static_cast<size_t>(state)];
  };
  std::vector<std::string> paths;
  std::vector<std::string> lines;
  for (const CallNode& node : states.calls().nodes()) {
    const bool is_root = node.caller == CallNode::kNone;
    paths.push_back(is_root ? fmt::format("{}:", states.threads()[node.thread].tid)
                            : fmt::format("{} {:x}", paths[node.caller], node.function));
    if (is_root) continue;
    lines.push_back(fmt::format("{} calls {} cut {}: ran {} slept {} self {}", paths.back(),
                                node.calls + node.counted, node.cut,
                                time(node.total, ThreadState::kUntraced),
                                time(node.total, ThreadState::kSleeping), Sum(node.self)));
  }
  return lines;
}

class FollowedCalls {
 public:
  FollowedCalls() { kernel_.writer().AppendTraceFormats(kDom0, kFunctionFormats); }
  FollowedCalls& Page(uint32_t cpu, const std::vector<std::byte>& page) {
    kernel_.Page(cpu, page);
    return *this;
  }
  const ThreadStates& Follow() {
    states_.emplace(kernel_.Open(), EventClock::Fixed(0));
    const absl::Status status = FollowThreads({&*states_, 1}, nullptr).status();
    EXPECT_TRUE(status.ok()) << status;
    return *states_;
  }

 private:
  RecordedKernel kernel_;
  std::optional<ThreadStates> states_;
};

TEST(ThreadStates, ACallGoesOnWhileItsThreadSleeps) {
  FollowedCalls calls;
  calls.Page(0, PageBuilder(1000)
                    .FunctionEntry(0, 7, 0x10, 0)
                    .FunctionEntry(5, 7, 0x20, 1)
                    .Switch(10, 7, kSleep, 8, "db")
                    .FunctionEntry(2, 8, 0x30, 0)
                    .FunctionReturn(4, 8, 0x30, 0)
                    .Switch(24, 8, kSleep, 7, "web")
                    .FunctionReturn(3, 7, 0x20, 1)
                    .FunctionReturn(2, 7, 0x10, 0)
                    .Page());
  EXPECT_THAT(CallsOf(calls.Follow()),
              ElementsAre("7: 10 calls 1 cut 0: ran 20 slept 30 self 7",
                          "7: 10 20 calls 1 cut 0: ran 13 slept 30 self 43",
                          "8: 30 calls 1 cut 0: ran 4 slept 0 self 4"));
}

// Between the event of a switch and the switch, the thread that stops calls functions.
TEST(ThreadStates, CallsBetweenASwitchAndItsEventAreOfTheThreadThatStops) {
  FollowedCalls calls;
  calls.Page(0, PageBuilder(1000)
                    .FunctionEntry(0, 7, 0x10, 0)
                    .Switch(10, 7, kSleep, 8, "db")
                    .FunctionEntry(2, 7, 0x20, 1)
                    .FunctionReturn(4, 7, 0x20, 1)
                    .FunctionEntry(3, 8, 0x30, 0)
                    .FunctionReturn(1, 8, 0x30, 0)
                    .Switch(20, 8, kSleep, 7, "web")
                    .FunctionReturn(5, 7, 0x10, 0)
                    .Page());
  const ThreadStates& states = calls.Follow();
  EXPECT_EQ(states.missed_switches(), 0U);
  EXPECT_THAT(CallsOf(states), ElementsAre("7: 10 calls 1 cut 0: ran 15 slept 30 self 41",
                                           "7: 10 20 calls 1 cut 0: ran 0 slept 4 self 4",
                                           "8: 30 calls 1 cut 0: ran 1 slept 0 self 1"));
}

TEST(ThreadStates, TheIdleThreadsCallsHaveNoTimeWhileOthersRun) {
  FollowedCalls calls;
  calls.Page(0, PageBuilder(1000)
                    .FunctionEntry(0, 0, 0x10, 0)
                    .Switch(10, 0, 0, 8, "db")
                    .Switch(20, 8, kSleep, 0, "swapper/0")
                    .FunctionReturn(5, 0, 0x10, 0)
                    .Page());
  EXPECT_THAT(CallsOf(calls.Follow()), ElementsAre("0: 10 calls 1 cut 0: ran 15 slept 0 self 15"));
}

TEST(ThreadStates, EventsThatWereLostCutCalls) {
  FollowedCalls calls;
  calls.Page(0, PageBuilder(1000).FunctionEntry(0, 7, 0x10, 0).Page())
      .Page(0, PageBuilder(1100).FunctionReturn(0, 7, 0x10, 0).Page(/*is_lossy=*/true));
  EXPECT_THAT(CallsOf(calls.Follow()), ElementsAre("7: 10 calls 0 cut 1: ran 0 slept 0 self 0",
                                                   "7: 0 calls 0 cut 0: ran 0 slept 0 self 0",
                                                   "7: 0 10 calls 0 cut 1: ran 0 slept 0 self 0"));
}

TEST(ThreadStates, CallsWithoutEndsHaveTheirCallers) {
  FollowedCalls calls;
  calls.Page(
      0, PageBuilder(1000).FunctionCall(0, 7, 0x10, 0x99).FunctionCall(5, 7, 0x10, 0x99).Page());
  const ThreadStates& states = calls.Follow();
  EXPECT_THAT(CallsOf(states), ElementsAre("7: 99 calls 0 cut 0: ran 0 slept 0 self 0",
                                           "7: 99 10 calls 2 cut 0: ran 0 slept 0 self 0"));
  EXPECT_EQ(states.function_events().events, 2U);
  EXPECT_EQ(states.function_events().bytes, 56U);
}

}  // namespace
}  // namespace xenoscope::guests
