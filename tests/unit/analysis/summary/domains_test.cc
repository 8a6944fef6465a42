// The analyses of domains and vCPUs: states, memory, the scheduler's events, PV and guest events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "analysis/summary/registry.h"
#include "base/resolver.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::Rec;
using trace::TraceBuilder;

TEST(DomainStates, SimultaneousChangesAreOne) {
  //   cycle  10     30         50             100         120
  //   p0     d1v0              records lost   d1v0        preempted
  //   p1     d1v1   preempted
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}),
                   Rec(kLostRecords, 100, {7, 1, 50, 0}),  // lost since 50; d1v0 runs at 100
                   Rec(kRunningToRunnable, 120, {Vcpu(1, 0)})});
  trace.Window(
      1, {Rec(kRunnableToRunning, 10, {Vcpu(1, 1)}), Rec(kRunningToRunnable, 30, {Vcpu(1, 1)})});
  EXPECT_THAT(DomainLines(Analysed(trace, MakeDomainStates), 1),
              ElementsAre("runstates/full run count=2 cycles=40",
                          "runstates/concurrency_hazard count=1 cycles=20",
                          "runstates/lost count=1 cycles=50",
                          "runstate_edges/full_contention, open at the end count=1 cycles=0"));
}

TEST(DomainTotals, AreTheSumsOfVcpus) {
  //   cycle  10     20    24     30     40         60        70
  //   p0     d1v0   exit  enter  exit   preempted  d2v0      blocked
  //   p1     d1v1                                  blocked   idle
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}), Rec(kVmexit, 20, {kVmexitNpf, 0, 0}),
          Rec(kVmentry, 24, {}), Rec(kVmexit, 30, {kVmexitNpf, 0, 0}),
          Rec(kRunningToRunnable, 40, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 60, {Vcpu(2, 0)}),
          Rec(kRunningToBlocked, 70, {Vcpu(2, 0)})});
  trace.Window(1,
               {Rec(kRunnableToRunning, 10, {Vcpu(1, 1)}), Rec(kRunningToBlocked, 60, {Vcpu(1, 1)}),
                Rec(kRunnableToRunning, 70, {trace::kIdle})});
  const AnalysisResult result = Analysed(trace, MakeDomainTotals);
  EXPECT_THAT(Lines(result.document.trace),
              ElementsAre("domains/d1 running=80 runnable=30 blocked=10 other=0 exits=2 "
                          "exits_per_second=33333333",
                          "domains/d2 running=10 runnable=0 blocked=0 other=0 exits=0 "
                          "exits_per_second=0"));
  // d1v0 is in its guest for 10 + 6 of 30 cycles; d1v1 and d2v0 are never seen in a guest.
  const MetricGroup& group = result.document.trace.groups.front();
  EXPECT_EQ(group.rows[0].metrics.back().key, "in_xen");
  EXPECT_DOUBLE_EQ(std::get<double>(group.rows[0].metrics.back().value), 14.0 / 30);
  EXPECT_EQ(group.rows[1].metrics.back().key, "exits_per_second");
}

TEST(Memory, GrantsAreByRunningDomainForNamedDomain) {
  //   cycle  5               10     11          12          13            14
  //   p0     map of d3       d0v0   map of d1   map of d1   unmap of d1   transfer to d2
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kGrantMap, 5, {3}),  // it is not known yet which vCPU runs
                Rec(kRunnableToRunning, 10, {Vcpu(0, 0)}), Rec(kGrantMap, 11, {1}),
                Rec(kGrantMap, 12, {1}), Rec(kGrantUnmap, 13, {1}), Rec(kGrantTransfer, 14, {2})});
  const AnalysisResult result = Analysed(trace, MakeMemory);
  EXPECT_THAT(DomainLines(result, 0), ElementsAre("grants_by/for d1 maps=2 unmaps=1 transfers=0",
                                                  "grants_by/for d2 maps=0 unmaps=0 transfers=1"));
  // Domains without a vCPU in the trace are described too.
  EXPECT_THAT(DomainLines(result, 1), ElementsAre("grants_for/by d0 maps=2 unmaps=1 transfers=0"));
  EXPECT_THAT(DomainLines(result, 3),
              ElementsAre("grants_for/by (unknown) maps=1 unmaps=0 transfers=0"));
}

TEST(Memory, ChangesAreCountedByOrderAndByExit) {
  //   cycle  10    11     12         12            20     20
  //   d1v0   runs  enter  exit: NPF  pod populate  enter  decrease reservation
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}), Rec(kVmentry, 11, {}),
                   Rec(kVmexit, 12, {kVmexitNpf, 0, 0}),
                   // Before 4.18: domain and order in one word, then an undefined word.
                   Rec(kPodPopulate, {7, 0, 8, 0, 1U | 9U << 16, 0xdeadbeef}),
                   Rec(kVmentry, 20, {}), Rec(kDecreaseReservation, {7, 0, 1U, 0xdeadbeef})});
  EXPECT_THAT(DomainLines(Analysed(trace, MakeMemory), 1),
              ElementsAre("memory/decrease reservation count=1 pages=1",
                          "memory/decrease reservation/order 0 count=1 pages=1",
                          "memory/decrease reservation/in no exit count=1",
                          "memory/pod populate count=1 pages=512",
                          "memory/pod populate/order 9 count=1 pages=512",
                          "memory/pod populate/in VMEXIT_NPF count=1"));
}

// More vCPUs than any host has, as in a damaged trace.
TEST(Scheduler, MergesVcpusBeyondTheLimit) {
  TraceBuilder trace;
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i < 65536 + 7; ++i) records.push_back(Rec(kSchedWake, 10 + i, {1, i}));
  trace.Window(0, records);
  EXPECT_THAT(
      Lines(Analysed(trace, MakeScheduler).document.trace),
      ElementsAre("scheduler/any scheduler", "scheduler/any scheduler/vcpu_wake count=65543",
                  "scheduler_edges/events of more vCPUs than are told apart count=7"));
}

TEST(Scheduler, CountsEventsAndMeasuresWaitsOfVcpus) {
  //   cycle  10     11      15          16                17     17            18      20    21
  //   d1v0   woken          waited 3us  runs, preempted   runs   credit reset  stolen        blocks
  //   others        tickle                                                             idle
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kSchedWake, 10, {1, 0}),                   // wake d1v0
          Rec(kTickle, 11, {0}),                         // a tickle names no vCPU
          Rec(kSwitchInfnext, 15, {1, 0, 3000, 10000}),  // it waited 3 us
          Rec(kRunnableToRunning, 16, {Vcpu(1, 0)}), Rec(kRunningToRunnable, 16, {Vcpu(1, 0)}),
          Rec(kRunnableToRunning, 17, {Vcpu(1, 0)}), Rec(kCreditReset, 17, {Vcpu(1, 0), 5, 9}),
          Rec(kStolenVcpu, 18, {2, 1, 0}),              // stolen from pCPU 2
          Rec(kSwitchInfnext, 20, {0x7fff, 0, 99, 0}),  // the idle vCPU does not wait
          Rec(kSchedBlock, 21, {1, 0})});
  const AnalysisResult result = Analysed(trace, MakeScheduler);
  EXPECT_THAT(
      Lines(result.document.trace),
      ElementsAre("runqueue_waits/runnable until running count=1 cycles=1",
                  "switch_infnext/runnable_ns count=1 cycles=3000", "scheduler/credit",
                  "scheduler/credit/stolen_vcpu count=1", "scheduler/credit2",
                  "scheduler/credit2/tickle count=1", "scheduler/credit2/credit_reset count=1",
                  "scheduler/any scheduler", "scheduler/any scheduler/vcpu_wake count=1",
                  "scheduler/any scheduler/vcpu_block count=1",
                  "scheduler/any scheduler/switch_infnext count=2"));
  EXPECT_THAT(
      VcpuLines(result, 1, 0),
      ElementsAre("switch_infnext/runnable_ns count=1 cycles=3000", "scheduler/vcpu_wake count=1",
                  "scheduler/vcpu_block count=1", "scheduler/csched:stolen_vcpu count=1",
                  "scheduler/csched2:credit_reset count=1"));
}

TEST(PvEvents, CountOperationsByTheRecordedArguments) {
  //   cycle  5     10    11               12                 13            14
  //   p0     iret  d0v0  sched_op(block)  grant_table_op     mmu_update    mmu_update
  //                                       (map_grant, 4)     (3, goes on)  (2) in a multicall
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kHypercall, 5, {kIret}),  // it is not known yet which vCPU runs
                Rec(kRunnableToRunning, 10, {Vcpu(0, 0)}),
                Rec(kHypercall, 11, {kSchedOp | 1U << 20, 1}),  // sched_op(block)
                Rec(kHypercall, 12,
                    {kGrantTableOp | 1U << 20 | 1U << 24, 0, 4}),  // grant_table_op(map, , 4)
                Rec(kHypercall, 13, {kMmuUpdate | 1U << 22, 0x80000003}),  // mmu_update(, 3 to go)
                Rec(kSubcall, 14, {kMmuUpdate | 2U << 20 | 1U << 22, 0, 0, 2})});  // in a multicall
  const AnalysisResult result = Analysed(trace, MakePvEvents);
  EXPECT_THAT(VcpuLines(result, 0, 0),
              ElementsAre("pv/hypercall count=4", "pv/hypercall (subcall) count=1",
                          "hypercalls/mmu_update count=2 in_multicall=1 operations=5",
                          "hypercalls/grant_table_op count=1 in_multicall=0 operations=4",
                          "hypercalls/grant_table_op/map_grant_ref count=1",
                          "hypercalls/sched_op count=1 in_multicall=0",
                          "hypercalls/sched_op/block count=1"));
  EXPECT_THAT(Lines(result.document.trace),
              ElementsAre("pv_unattributed/of an unknown vCPU count=1"));
}

// A resolver that names an address "MODE+ADDRESS".
class Addresses : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode mode, Address address) override {
    functions_.push_back({"image", fmt::format("{}+{:x}", ToString(mode), address), ""});
    return {static_cast<uint32_t>(functions_.size() - 1)};
  }
  const Function& Describe(FunctionId id) const override { return functions_[id.value]; }
  std::vector<Frame> Inlined(DomainId, Mode, Address) override { return {}; }

 private:
  std::deque<Function> functions_;
};

TEST(PvEvents, AreListedByTheirAddress) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {Vcpu(0, 0)}),
          Rec(kEmulatePrivop | k64Bit, 11, {0x81000010, 0xffffffff}),     // 64 bits
          Rec(kEmulatePrivop | k64Bit, 12, {0x81000010, 0xffffffff}),     // again
          Rec(kEmulatePrivop, 13, {0x1234}),                              // a 32-bit guest
          Rec(kTrap | k64Bit, 14, {0x401000, 0, 14}),                     // trap
          Rec(kPtwr | k64Bit, 15, {1, 2, 3, 4, 0x81000020, 0xffffffff}),  // entry, address, eip
          Rec(kPtwrPae, 16, {1, 2, 3, 0x5678}),                           // with PAE
          Rec(kMathStateRestore, 17, {})});                               // has no address
  Addresses addresses;
  const AnalysisResult result = Analysed(trace, MakePvEvents, trace::Vendor::kUnknown, &addresses);
  EXPECT_THAT(
      VcpuLines(result, 0, 0, "pv_eip"),
      ElementsAre(
          "pv_eip/0xffffffff81000010, emulate privop count=2 symbol=kernel+ffffffff81000010 "
          "image=image",
          "pv_eip/0x1234, emulate privop count=1 symbol=user+1234 image=image",
          "pv_eip/0x5678, ptwr(pae) count=1 symbol=user+5678 image=image",
          "pv_eip/0x401000, trap page_fault count=1 symbol=user+401000 image=image",
          "pv_eip/0xffffffff81000020, ptwr count=1 symbol=kernel+ffffffff81000020 "
          "image=image"));
}

TEST(GuestEvents, BelongToTheVcpuThatRuns) {
  //   cycle  0      10    10           10
  //   p0     0x001  d1v0  0x013 twice  0xfff
  TraceBuilder trace;
  trace.Window(
      0, {Rec(GuestEvent(0x001), {1}), Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}),
          Rec(GuestEvent(0x013), {1, 2}), Rec(GuestEvent(0x013), {}), Rec(GuestEvent(0xfff), {})});
  const AnalysisResult result = Analysed(trace, MakeGuestEvents);
  EXPECT_THAT(VcpuLines(result, 1, 0),
              ElementsAre("guest_events/0x013 count=2", "guest_events/0xfff count=1"));
  EXPECT_THAT(Lines(result.document.trace), ElementsAre("guest_events/0x001 count=1"));
}

TEST(GuestEvents, HaveNoGroupWithoutEvents) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeGuestEvents), 1, 0), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::analysis
