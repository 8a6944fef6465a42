#include "report/threads/thread_exits_view.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/table/table_csv.h"
#include "report/table/table_text.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

constexpr DomainId kD1{1};

// Thread 7 executes CPUID twice, and its vCPU 1 makes a hypercall: 1000 cycles are a second.
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(
      0, {Rec(kRunnableToRunning, 900, {kD1V0}), Rec(kVmentry, 950, {}),
          Rec(kVmexit64, 1100, {kVmexitCpuid, 0x1000, 0}), Rec(kHvmCpuid, 1110, {1, 0, 0, 0, 0}),
          Rec(kVmentry, 1150, {}), Rec(kVmexit64, 1200, {kVmexitCpuid, 0x1000, 0}),
          Rec(kHvmCpuid, 1210, {1, 0, 0, 0, 0}), Rec(kVmentry, 1230, {}),
          Rec(kVmexit64, 1700, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 1800, {kD1V0})});
  xen.Window(1, {Rec(kRunnableToRunning, 900, {Vcpu(1, 1)}), Rec(kPvHypercallV2, 1300, {29}),
                 Rec(kRunningToBlocked, 1800, {Vcpu(1, 1)})});
  return xen;
}

Table ExitsOf(ThreadsBy by, bool text) {
  const trace::TraceBuilder bytes = Xen();
  const auto xen = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(xen.ok()) << xen.status();
  guests::RecordedKernel kernel(kD1);
  kernel.Thread(5, 7, "web")
      .Page(0, guests::PageBuilder(1000)
                   .Switch(0, 0, 0, 7, "web")
                   .Switch(600, 7, 1, 8, "db")
                   .Switch(300, 8, 1, 0, "idle")
                   .Page())
      .Page(
          1,
          guests::PageBuilder(1000).Switch(0, 0, 0, 9, "cron").Switch(900, 9, 1, 0, "idle").Page());
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(kernel.Open(), guests::EventClock::Fixed(0));
  const absl::Status status = guests::FollowThreads(domains, &*xen).status();
  EXPECT_TRUE(status.ok()) << status;
  return ThreadExitsTable(domains, [](DomainId) { return std::string("web1"); },
                          Clock{1000, ClockSource::kGiven}, trace::Vendor::kSvm,
                          {.by = by, .text = text});
}

TEST(ThreadExitsTable, HasATimeForExitsAndANumberForHypercalls) {
  EXPECT_EQ(ToCsv(ExitsOf(ThreadsBy::kThread, false)),
            "domain,container,process,pid,thread,tid,reason,subreason,entries,xen_s\r\n"
            "web1,,db,,db,8,VMEXIT_HLT,-,1,0.1\r\n"
            "web1,,,5,web,7,VMEXIT_CPUID,cpuid leaf 0x1,2,0.08\r\n"
            "web1,,cron,,cron,9,hypercall,sched_op,1,\r\n");
}

TEST(ThreadExitsTable, TextHasTheSum) {
  const std::string text = ToText(ExitsOf(ThreadsBy::kDomain, true), {});
  EXPECT_NE(text.find("all threads                                      4  180.000 ms\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace xenoscope::report
