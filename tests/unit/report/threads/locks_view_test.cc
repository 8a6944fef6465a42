#include "report/threads/locks_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/table/table_csv.h"
#include "report/table/table_text.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using guests::PageBuilder;

constexpr DomainId kLockingGuest{1};
constexpr uint64_t kLock = 0xffff'8880'0000'1000;
constexpr uint64_t kOther = 0xffff'8880'0000'2000;
constexpr uint32_t kSpinFlag = 1;
constexpr uint32_t kMutexSpin = 33;
constexpr uint32_t kMutexFlag = 32;

// Returns the table of a kernel's events; 1000 cycles are a second.
Table LocksOf(guests::RecordedKernel& kernel, const trace::TraceFile* xen, bool text = false) {
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(kernel.Open(), guests::EventClock::Fixed(0));
  const absl::Status status = guests::FollowThreads(domains, xen).status();
  EXPECT_TRUE(status.ok()) << status;
  return LocksTable(domains, [](DomainId) { return std::string("web1"); },
                    Clock{1000, ClockSource::kGiven},
                    {.by = text ? ThreadsBy::kDomain : ThreadsBy::kThread, .text = text});
}

constexpr const char* kHead =
    "domain,container,process,pid,thread,tid,lock,type,contentions,failed,cut,time_s,mean_s,"
    "longest_s,others_stolen_s,guest_s,xen_s,stolen_s,halted_s,untraced_s,vcpu_lost_s,woken_s,"
    "preempted_s,sleeping_s,uninterruptible_s,lost_s\r\n";

// d1v0 and d1v1 run from 900 to 1700; d1v1 waits for a pCPU from 1100 to 1140, and from 1250 to
// 1300.
trace::TraceBuilder OtherVcpuWaits() {
  trace::TraceBuilder bytes;
  const uint32_t first = trace::kD1V0;
  const uint32_t second = trace::kD1V0 + 1;
  bytes.Window(0, {trace::Rec(trace::kRunnableToRunning, 900, {first}),
                   trace::Rec(trace::kRunningToBlocked, 1700, {first})});
  bytes.Window(1, {trace::Rec(trace::kRunnableToRunning, 900, {second}),
                   trace::Rec(trace::kRunningToRunnable, 1100, {second}),
                   trace::Rec(trace::kRunnableToRunning, 1140, {second}),
                   trace::Rec(trace::kRunningToRunnable, 1250, {second}),
                   trace::Rec(trace::kRunnableToRunning, 1300, {second}),
                   trace::Rec(trace::kRunningToBlocked, 1700, {second})});
  return bytes;
}

// Thread 7 spins for a lock from 1050 to 1150 on vCPU 0. Thread 8, or nobody, is on vCPU 1.
guests::RecordedKernel SpinsFor(uint32_t on_the_other) {
  guests::RecordedKernel kernel(kLockingGuest);
  kernel.Thread(5, 7, "web")
      .Page(0, PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .ContentionBegin(50, 7, kLock, kSpinFlag)
                   .ContentionEnd(100, 7, kLock)
                   .Switch(450, 7, guests::kSleep, 0, "idle")
                   .Page())
      .Page(1, PageBuilder(1000)
                   .Switch(0, 9, 0, on_the_other, "db")
                   .Switch(600, on_the_other, guests::kSleep, 9, "end")
                   .Page());
  return kernel;
}

TEST(LocksTable, SaysWhetherTheHolderMayHaveWaitedForAPcpu) {
  const trace::TraceBuilder bytes = OtherVcpuWaits();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  guests::RecordedKernel busy = SpinsFor(8);
  EXPECT_EQ(ToCsv(LocksOf(busy, &*xen)),
            std::string(kHead) +
                "web1,,,5,web,7,0xffff888000001000,spinlock,1,0,0,0.1,0.1,0.1,0.04,0.1,0,0,0,0,0,0,"
                "0,0,0,0\r\n");
  guests::RecordedKernel idle = SpinsFor(0);
  EXPECT_EQ(
      ToCsv(LocksOf(idle, &*xen)),
      std::string(kHead) +
          "web1,,,5,web,7,0xffff888000001000,spinlock,1,0,0,0.1,0.1,0.1,0,0.1,0,0,0,0,0,0,0,0,"
          "0,0\r\n");
}

// A mutex is spun for, then slept for: one wait. The holder's vCPU is the same one.
TEST(LocksTable, WaitGoesOnWhenTheThreadSleeps) {
  guests::RecordedKernel kernel(kLockingGuest);
  kernel.Thread(5, 7, "web")
      .Page(0, PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .ContentionBegin(50, 7, kLock, kMutexSpin)  // 1050
                   .ContentionBegin(20, 7, kLock, kMutexFlag)  // 1070
                   .Switch(10, 7, 2, 8, "db")                  // 1080
                   .Switch(300, 8, guests::kSleep, 7, "web")   // 1380
                   .ContentionEnd(20, 7, kLock, -4)            // 1400
                   .Switch(50, 7, guests::kSleep, 0, "idle")
                   .Page());
  EXPECT_EQ(ToCsv(LocksOf(kernel, nullptr)),
            std::string(kHead) +
                "web1,,,5,web,7,0xffff888000001000,mutex,1,1,0,0.35,0.35,0.35,0,0,0,0,0,0.05,0,0,0,"
                "0,0.3,0\r\n");
  const std::string text = ToText(LocksOf(kernel, nullptr, /*text=*/true), {});
  EXPECT_NE(text.find("all threads"), std::string::npos) << text;
  EXPECT_EQ(text.find("cut"), std::string::npos) << text;
}

// No time is taken for a wait of which a part is not known.
TEST(LocksTable, WaitsOfWhichAPartIsMissingHaveNoTime) {
  struct Case {
    const char* what;
    PageBuilder events;
    const char* row;
  };
  PageBuilder begun(0);
  begun.Switch(0, 0, 0, 7, "web");
  const std::vector<Case> cases{
      {"the end alone", PageBuilder(begun).ContentionEnd(10, 7, kLock),
       "0xffff888000001000,-,0,0,1,0"},
      {"the begin alone", PageBuilder(begun).ContentionBegin(10, 7, kLock, kSpinFlag),
       "0xffff888000001000,spinlock,0,0,1,0"},
      {"one within another, without an end",
       PageBuilder(begun)
           .ContentionBegin(10, 7, kLock, kMutexFlag)
           .ContentionBegin(10, 7, kOther, kSpinFlag)
           .ContentionEnd(10, 7, kLock),
       "0xffff888000002000,spinlock,0,0,1,0"},
      {"the one around it",
       PageBuilder(begun)
           .ContentionBegin(10, 7, kLock, kMutexFlag)
           .ContentionBegin(10, 7, kOther, kSpinFlag)
           .ContentionEnd(10, 7, kLock),
       "0xffff888000001000,mutex,1,0,0,0.02"}};
  for (const Case& each : cases) {
    guests::RecordedKernel kernel(kLockingGuest);
    kernel.Page(0, each.events.Page());
    const std::string csv = ToCsv(LocksOf(kernel, nullptr));
    EXPECT_NE(csv.find(each.row), std::string::npos) << each.what << csv;
  }
  guests::RecordedKernel lossy(kLockingGuest);
  lossy.Page(0, PageBuilder(begun).ContentionBegin(10, 7, kLock, kSpinFlag).Page())
      .Page(0, PageBuilder(100).ContentionEnd(0, 7, kLock).Page(/*is_lossy=*/true, 3));
  EXPECT_NE(ToCsv(LocksOf(lossy, nullptr)).find("spinlock,0,0,1,0"), std::string::npos);
}

// The events say whose they are, though none says that the thread came.
TEST(LocksTable, WaitsAreOfTheThreadThatWroteThem) {
  guests::RecordedKernel kernel(kLockingGuest);
  kernel.Page(0, PageBuilder(0)
                     .Switch(0, 0, 0, 7, "web")
                     .ContentionBegin(10, 9, kLock, kSpinFlag)
                     .ContentionEnd(10, 9, kLock)
                     .Page());
  const std::string csv = ToCsv(LocksOf(kernel, nullptr));
  EXPECT_NE(csv.find(",9,0xffff888000001000,spinlock,1,0,0,0.01"), std::string::npos) << csv;
}

TEST(LockType, HasTheWordsOfPerf) {
  EXPECT_EQ(LockType(1), "spinlock");
  EXPECT_EQ(LockType(4), "rwsem:W");
  EXPECT_EQ(LockType(33), "mutex");
  EXPECT_EQ(LockType(64), "flags 0x40");
  EXPECT_EQ(LockType(guests::kUnknownLock), "-");
}

}  // namespace
}  // namespace xenoscope::report
