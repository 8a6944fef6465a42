#include "guests/threads/xen_times.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr DomainId kD1{1};

// "7 exit 0x72 cpuid 1: 1 entry, 50".
std::string Line(uint32_t tid, const XenTime& time) {
  constexpr const char* kKinds[] = {"exit", "resume",     "hypercall", "subcall",
                                    "trap", "page fault", "emulation", "others"};
  std::string line = fmt::format("{} {}", tid, kKinds[static_cast<size_t>(time.reason.kind)]);
  if (time.reason.kind == EntryKind::kExit) {
    line += fmt::format(" {:#x} {} {}", time.reason.reason,
                        correlate::ToString(time.reason.exit_kind), time.reason.number);
  } else if (time.reason.reason != 0) {
    line += fmt::format(" {}", time.reason.reason);
  }
  return line + fmt::format(": {} times, {}", time.entries, time.time);
}

// Follows a domain's threads through both traces, and returns what Xen did for them.
std::vector<std::string> InXen(RecordedKernel& kernel, const trace::TraceBuilder& bytes) {
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(xen.ok()) << xen.status();
  ThreadStates states(kernel.Open(), EventClock::Fixed(0));
  const absl::Status status = FollowThreads({&states, 1}, &*xen).status();
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> lines;
  for (const XenTime& time : states.InXen()) {
    lines.push_back(Line(states.threads()[time.thread].tid, time));
  }
  return lines;
}

// Thread 7 runs until 2000, then thread 8.
void TwoThreads(RecordedKernel& kernel) {
  kernel.Page(0, PageBuilder(1000)
                     .Switch(0, 0, 0, 7, "web")
                     .Switch(1000, 7, kSleep, 8, "db")
                     .Switch(1000, 8, kSleep, 0, "idle")
                     .Page());
}

TEST(FollowThreads, AThreadsTimeInXenIsDividedByReasonAndSubreason) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kRunnableToRunning, 900, {kD1V0}), Rec(kVmentry, 1050, {}),
          Rec(kVmexit64, 1100, {kVmexitCpuid, 0x1000, 0}), Rec(kHvmCpuid, 1110, {1, 0, 0, 0, 0}),
          Rec(kVmentry, 1150, {}), Rec(kVmexit64, 1200, {kVmexitCpuid, 0x1000, 0}),
          Rec(kHvmCpuid, 1210, {7, 0, 0, 0, 0}), Rec(kVmentry, 1230, {}),
          Rec(kVmexit64, 2100, {kVmexitCpuid, 0x1000, 0}), Rec(kHvmCpuid, 2110, {1, 0, 0, 0, 0}),
          Rec(kVmentry, 2160, {}), Rec(kVmexit64, 2200, {kVmexitIntr, 0x1000, 0}),
          Rec(kVmentry, 2205, {}), Rec(kVmexit64, 2900, {kVmexitHlt, 0x1000, 0}),
          Rec(kRunningToBlocked, 2940, {kD1V0})});
  RecordedKernel kernel(kD1);
  TwoThreads(kernel);
  EXPECT_THAT(
      InXen(kernel, xen),
      UnorderedElementsAre("7 resume: 0 times, 50", "7 exit 0x72 cpuid 1: 1 times, 50",
                           "7 exit 0x72 cpuid 7: 1 times, 30", "8 exit 0x72 cpuid 1: 1 times, 60",
                           "8 exit 0x60 (no handler) 0: 1 times, 5",
                           "8 exit 0x78 (no handler) 0: 1 times, 40"));
}

// The handler records its operation after the vCPU was put on a pCPU again.
TEST(FollowThreads, AnExitThatLeavesThePcpuIsOne) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0,
             {Rec(kRunnableToRunning, 900, {kD1V0}), Rec(kVmentry, 950, {}),
              Rec(kVmexit64, 1100, {kVmexitMsr, 0x1000, 0}), Rec(kRunningToRunnable, 1130, {kD1V0}),
              Rec(kRunnableToRunning, 1300, {kD1V0}), Rec(kHvmMsrWrite, 1310, {0x1b, 0, 0}),
              Rec(kVmentry, 1320, {}), Rec(kVmexit64, 2900, {kVmexitHlt, 0x1000, 0})});
  RecordedKernel kernel(kD1);
  TwoThreads(kernel);
  // The trace ends in the last exit, at its begin.
  EXPECT_THAT(InXen(kernel, xen), ElementsAre("7 exit 0x7c msr_write 27: 1 times, 50"));
}

// A guest may claim that it puts a thread on a vCPU while Xen runs.
TEST(FollowThreads, AnExitOfTwoThreadsIsCountedOnce) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kRunnableToRunning, 900, {kD1V0}), Rec(kVmentry, 950, {}),
          Rec(kVmexit64, 1900, {kVmexitCpuid, 0x1000, 0}), Rec(kHvmCpuid, 2050, {1, 0, 0, 0, 0}),
          Rec(kVmentry, 2100, {}), Rec(kVmexit64, 2900, {kVmexitHlt, 0x1000, 0})});
  RecordedKernel kernel(kD1);
  TwoThreads(kernel);
  EXPECT_THAT(InXen(kernel, xen), ElementsAre("7 exit 0x72 cpuid 1: 1 times, 100",
                                              "8 exit 0x72 cpuid 1: 0 times, 100"));
}

// The trace has no end of these: their number is all that is known.
TEST(FollowThreads, AParavirtualGuestsEntriesHaveNoTime) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 900, {kD1V0}), Rec(kPvHypercallV2, 1100, {29}),
                 Rec(kPvHypercallV2, 1200, {29}), Rec(kPvTrap, 2300, {0x1000, 14}),
                 Rec(kPvHypercallV2, 3500, {29}), Rec(kRunningToBlocked, 3600, {kD1V0})});
  RecordedKernel kernel(kD1);
  TwoThreads(kernel);
  EXPECT_THAT(InXen(kernel, xen),
              ElementsAre("7 hypercall 29: 2 times, 0", "8 trap 14: 1 times, 0"));
}

TEST(XenTimes, ReasonsBeyondTheLimitAreOthers) {
  XenTimes times(1);
  const auto limit = static_cast<uint32_t>(XenTimes::kMaxSums);
  for (uint32_t i = 0; i < limit + 10; ++i) times.Handled(0, {i + 1, false, i}, 3, 2);
  times.Handled(0, {limit + 11, false, 0}, 3, 2);
  times.Finish();
  const std::vector<XenTime> all = times.All();
  ASSERT_EQ(all.size(), limit + 1);
  EXPECT_EQ(all.front().entries, 2U);
  EXPECT_EQ(all.back().reason.kind, EntryKind::kOthers);
  EXPECT_EQ(all.back().time, 20U);
}

}  // namespace
}  // namespace xenoscope::guests
