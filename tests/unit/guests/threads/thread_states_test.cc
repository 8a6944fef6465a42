#include "guests/threads/thread_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/follow_threads.h"
#include "recording/sample_writer.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using recording::SampleWriter;

constexpr uint64_t kSleep = 1;
constexpr uint64_t kDisk = 2;
constexpr uint64_t kPreempt = 0x100;

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
    states_.emplace(kernel_.Open(), 0);
    const absl::Status status = FollowThreads({&*states_, 1}, xen);
    EXPECT_TRUE(status.ok()) << status;
    return *this;
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

 private:
  RecordedKernel kernel_;
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
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 0, {dom0}), Rec(kRunningToRunnable, 100, {dom0}),
                 Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kRunningToBlocked, 160, {kD1V0}),
                 Rec(kRunnableToRunning, 160, {dom0}), Rec(kRunningToBlocked, 200, {dom0}),
                 Rec(kRunnableToRunning, 200, {kIdle}), Rec(kBlockedToRunnable, 260, {dom0}),
                 Rec(kRunningToRunnable, 262, {kIdle}), Rec(kRunnableToRunning, 262, {dom0}),
                 Rec(kRunningToRunnable, 400, {dom0})});
  return xen;
}

TEST(FollowThreads, DividesAThreadsTimeByWhatXenDidWithItsVcpu) {
  const trace::TraceBuilder bytes = Xen();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  Followed threads;
  threads
      .Page(0, PageBuilder(10)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(70, 7, kSleep, 8, "db")    // 80
                   .Switch(90, 8, kSleep, 0, "idle")  // 170
                   .Switch(100, 0, 0, 7, "web")       // 270
                   .Switch(50, 7, kSleep, 0, "idle")  // 320
                   .Page())
      .Run(&*xen);
  EXPECT_EQ(threads.Time(7, ThreadState::kGuest), 70U + 50U);
  EXPECT_EQ(threads.Time(8, ThreadState::kGuest), 20U + 10U);
  EXPECT_EQ(threads.Time(8, ThreadState::kStolen), 60U);
  EXPECT_EQ(threads.Time(0, ThreadState::kGuest), 30U + 8U);
  EXPECT_EQ(threads.Time(0, ThreadState::kHalted), 60U);
  EXPECT_EQ(threads.Time(0, ThreadState::kStolen), 2U);
  EXPECT_EQ(threads.states().vcpus()[0].window.Length(), 310U);
  const std::vector<StolenTime> stolen = threads.states().Stolen();
  ASSERT_EQ(stolen.size(), 1U);  // the idle vCPU's 2 cycles are nobody's
  EXPECT_EQ(threads.states().threads()[stolen[0].thread].tid, 8U);
  EXPECT_EQ(stolen[0].by, DomainId{1});
  EXPECT_EQ(stolen[0].time, 60U);
}

TEST(FollowThreads, SaysThatTimeBesideTheTraceIsUntraced) {
  const trace::TraceBuilder bytes = Xen();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  Followed threads;
  threads
      .Page(0, PageBuilder(390).Switch(0, 0, 0, 7, "web").Switch(50, 7, kSleep, 0, "idle").Page())
      .Run(&*xen);
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

}  // namespace
}  // namespace xenoscope::guests
