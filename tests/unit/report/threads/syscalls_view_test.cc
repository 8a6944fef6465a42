#include "report/threads/syscalls_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/table/table_csv.h"
#include "report/table/table_text.h"
#include "report/threads/interrupts_view.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using guests::PageBuilder;

constexpr DomainId kCallerGuest{1};
constexpr uint64_t kRead = 0;
constexpr uint64_t kFutex = 202;

// Returns the table of a kernel's events; 1000 cycles are a second.
Table CallsOf(guests::RecordedKernel& kernel, const trace::TraceFile* xen, bool text = false) {
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(kernel.Open(), guests::EventClock::Fixed(0));
  const absl::Status status = guests::FollowThreads(domains, xen).status();
  EXPECT_TRUE(status.ok()) << status;
  return SyscallsTable(domains, [](DomainId) { return std::string("web1"); },
                       Clock{1000, ClockSource::kGiven},
                       {.by = text ? ThreadsBy::kDomain : ThreadsBy::kThread, .text = text});
}

// d1v0 runs from 900 to 1700, but for 40 cycles from 1100, in which it waits for a pCPU.
trace::TraceBuilder VcpuWaitsOnce() {
  trace::TraceBuilder bytes;
  const uint32_t vcpu = trace::kD1V0;
  bytes.Window(0, {trace::Rec(trace::kRunnableToRunning, 900, {vcpu}),
                   trace::Rec(trace::kRunningToRunnable, 1100, {vcpu}),
                   trace::Rec(trace::kRunnableToRunning, 1140, {vcpu}),
                   trace::Rec(trace::kRunningToBlocked, 1700, {vcpu})});
  return bytes;
}

// Thread 7 reads for 100 cycles, of which its vCPU waits 40 for a pCPU, and fails; and for 350
// cycles, of which it sleeps 300.
guests::RecordedKernel Reader() {
  guests::RecordedKernel kernel(kCallerGuest);
  kernel.Thread(5, 7, "web")
      .Page(0, PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .SyscallEnter(50, 7, kRead)              // 1050
                   .SyscallExit(100, 7, kRead, -11)         // 1150
                   .SyscallEnter(50, 7, kRead)              // 1200
                   .Switch(20, 7, guests::kSleep, 8, "db")  // 1220
                   .Switch(300, 8, guests::kSleep, 7, "web")
                   .SyscallExit(30, 7, kRead, 5)  // 1550
                   .Switch(50, 7, guests::kSleep, 0, "idle")
                   .Page());
  return kernel;
}

TEST(SyscallsTable, DividesCallsByWhatThreadsDidMeanwhile) {
  const trace::TraceBuilder bytes = VcpuWaitsOnce();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  guests::RecordedKernel kernel = Reader();
  EXPECT_EQ(ToCsv(CallsOf(kernel, &*xen)),
            "domain,container,process,pid,thread,tid,call,calls,errors,cut,time_s,mean_s,longest_s,"
            "guest_s,xen_s,stolen_s,halted_s,untraced_s,vcpu_lost_s,woken_s,preempted_s,sleeping_s,"
            "uninterruptible_s,lost_s\r\n"
            "web1,,,5,web,7,read,2,1,0,0.45,0.225,0.35,0.11,0,0.04,0,0,0,0,0,0.3,0,0\r\n");
}

TEST(SyscallsTable, TextHasTheSum) {
  guests::RecordedKernel kernel = Reader();
  const std::string text = ToText(CallsOf(kernel, nullptr, /*text=*/true), {});
  EXPECT_NE(text.find("all threads      "), std::string::npos) << text;
  EXPECT_EQ(text.find("cut"), std::string::npos) << text;
}

// No time is taken for a call's of which a part is not known.
TEST(SyscallsTable, CallsOfWhichAPartIsMissingHaveNoTime) {
  struct Case {
    const char* what;
    PageBuilder events;
    const char* row;
  };
  PageBuilder begun(0);
  begun.Switch(0, 0, 0, 7, "web");
  const std::vector<Case> cases{
      {"the return alone", PageBuilder(begun).SyscallExit(10, 7, kRead, 0), "read,0,0,1,0"},
      {"the begin alone", PageBuilder(begun).SyscallEnter(10, 7, kRead), "read,0,0,1,0"},
      {"another return",
       PageBuilder(begun).SyscallEnter(10, 7, kFutex).SyscallExit(10, 7, kRead, 0),
       "futex,0,0,1,0"},
      {"two begins",
       PageBuilder(begun)
           .SyscallEnter(10, 7, kRead)
           .SyscallEnter(10, 7, kRead)
           .SyscallExit(10, 7, kRead, 0),
       "read,1,0,1,0.01"}};
  for (const Case& each : cases) {
    guests::RecordedKernel kernel(kCallerGuest);
    kernel.Page(0, each.events.Page());
    EXPECT_NE(ToCsv(CallsOf(kernel, nullptr)).find(each.row), std::string::npos) << each.what;
  }
  guests::RecordedKernel lossy(kCallerGuest);
  lossy.Page(0, PageBuilder(begun).SyscallEnter(10, 7, kRead).Page())
      .Page(0, PageBuilder(100).SyscallExit(0, 7, kRead, 0).Page(/*is_lossy=*/true, 3));
  EXPECT_NE(ToCsv(CallsOf(lossy, nullptr)).find("read,0,0,1,0"), std::string::npos);
}

// The events say whose they are, though none says that the thread came.
TEST(SyscallsTable, CallsAreOfTheThreadThatMadeThem) {
  guests::RecordedKernel kernel(kCallerGuest);
  kernel.Page(0, PageBuilder(0)
                     .Switch(0, 0, 0, 7, "web")
                     .SyscallEnter(10, 9, kRead)
                     .SyscallExit(10, 9, kRead, 0)
                     .Page());
  const std::string csv = ToCsv(CallsOf(kernel, nullptr));
  EXPECT_NE(csv.find(",9,read,1,0,0,0.01"), std::string::npos) << csv;
}

TEST(SyscallName, IsTheNumberWhereThereIsNone) {
  EXPECT_EQ(SyscallName(0), "read");
  EXPECT_EQ(SyscallName(469), "file_setattr");
  EXPECT_EQ(SyscallName(100'000), "100000");
  EXPECT_EQ(SyscallName(guests::kOtherSyscalls), "(others)");
}

// NET_RX runs for 100 cycles, of which its vCPU waits 40 for a pCPU and eth0's handler takes 20.
TEST(InterruptsTable, TimeOfAHandlerIsWithoutThoseThatInterruptIt) {
  const trace::TraceBuilder bytes = VcpuWaitsOnce();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  guests::RecordedKernel kernel(kCallerGuest);
  kernel.Page(0, PageBuilder(1000)
                     .Switch(0, 0, 0, 7, "web")
                     .Interrupt(50, guests::kSoftirqEntryId, 3)  // 1050
                     .IrqEntry(10, 17, "eth0")                   // 1060
                     .Interrupt(20, guests::kIrqExitId, 17)      // 1080
                     .Interrupt(70, guests::kSoftirqExitId, 3)   // 1150
                     .Interrupt(10, guests::kIrqExitId, 18)
                     .IrqEntry(10, 17, "eth0")
                     .Switch(50, 7, guests::kSleep, 0, "idle")
                     .Page());
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(kernel.Open(), guests::EventClock::Fixed(0));
  const absl::Status status = guests::FollowThreads(domains, &*xen).status();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ToCsv(InterruptsTable(domains, [](DomainId) { return std::string("web1"); },
                                  Clock{1000, ClockSource::kGiven}, {})),
            "domain,kind,number,handler,runs,cut,time_s,longest_s,guest_s,xen_s,stolen_s,halted_s,"
            "untraced_s,vcpu_lost_s,lost_s\r\n"
            "web1,softirq,3,NET_RX,1,0,0.08,0.08,0.04,0,0.04,0,0,0,0\r\n"
            "web1,irq,17,eth0,1,1,0.02,0.02,0.02,0,0,0,0,0,0\r\n"
            "web1,irq,18,,0,1,0,0,0,0,0,0,0,0,0\r\n");
}

}  // namespace
}  // namespace xenoscope::report
