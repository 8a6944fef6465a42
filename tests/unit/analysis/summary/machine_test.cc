// The analyses of the machine: volume, pCPUs, affinity, power, interrupts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::kIdle;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kUnknownEvent = 0x802fff;  // of class hw

TEST(LogVolume, CountsEveryRecordInItsClassAndOnItsPcpu) {
  //   cycle  10    12     15             18    20           25
  //   p0     d1v0  enter                       exit: CPUID  tickle, padding
  //   p1                  unknown event  iret
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}),  // 16 bytes
                   Rec(kVmentry, 12, {}),                      // 12
                   Rec(kVmexit, 20, {kVmexitCpuid, 0, 0}),     // 24
                   Rec(kHlt, {0}),                             // 8
                   Rec(kTickle, 25, {1}),                      // 16
                   Rec(kWrapBuffer, {0, 0})});                 // 12
  trace.Window(1, {Rec(kUnknownEvent, 15, {}),                 // 12, of an unknown event
                   Rec(kHypercall, 18, {kIret})});             // 16
  const AnalysisResult result = Analysed(trace, MakeLogVolume);
  EXPECT_EQ(result.trace.record_bytes, 116U);
  EXPECT_THAT(
      Lines(result.document.trace),
      ElementsAre("volume/gen records=1 bytes=12", "volume/gen/padding records=1 bytes=12",
                  "volume/sched records=2 bytes=32", "volume/sched/runstates records=1 bytes=16",
                  "volume/sched/scheduler's own records=1 bytes=16",
                  "volume/hvm records=3 bytes=44", "volume/hvm/vmentry records=1 bytes=12",
                  "volume/hvm/vmexit records=1 bytes=24", "volume/hvm/handler records=1 bytes=8",
                  "volume/pv records=1 bytes=16", "volume/pv/entry records=1 bytes=16",
                  "volume/hw records=1 bytes=12", "volume/hw/irq records=1 bytes=12",
                  "volume_by_pcpu/p0 records=6 bytes=88 gen=12 sched=32 hvm=44 hvm_vmentry=12 "
                  "hvm_vmexit=24 hvm_handler=8 pv=0 hw=0",
                  "volume_by_pcpu/p1 records=2 bytes=28 gen=0 sched=0 hvm=0 hvm_vmentry=0 "
                  "hvm_vmexit=0 hvm_handler=0 pv=16 hw=12"));
}

TEST(Pcpus, ContinuedTimesliceIsOneInterval) {
  //   cycle  10    20             30    45        50    57
  //   p0     d1v0  d1v0 goes on   idle  unknown   d1v0  the trace ends
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}), Rec(kContinueRunning, 20, {Vcpu(1, 0)}),
          Rec(kRunningToBlocked, 30, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 30, {Vcpu(kIdle, 0)}),
          Rec(kRunningToRunnable, 45, {Vcpu(kIdle, 0)}), Rec(kRunnableToRunning, 50, {Vcpu(1, 0)}),
          Rec(kTickle, 57, {1})});
  EXPECT_THAT(Lines(Analysed(trace, MakePcpus).document.trace),
              ElementsAre("utilisation/p0", "utilisation/p0/running count=2 cycles=27",
                          "utilisation/p0/idle count=1 cycles=15",
                          "pcpu_edges/p0, not known who ran cycles=5"));
}

TEST(Pcpus, LostTimeIsFromTheFirstLostRecordToTheMark) {
  //   cycle  10    50               100   120
  //   p0     d1v0  7 records lost   d1v0  blocked
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}),
                   Rec(kLostRecords, 100, {7, 1, 50, 0}),  // 7 records lost since 50; d1v0 runs
                   Rec(kRunningToBlocked, 120, {Vcpu(1, 0)})});
  EXPECT_THAT(
      Lines(Analysed(trace, MakePcpus).document.trace),
      ElementsAre("utilisation/p0 lost_records=7", "utilisation/p0/running count=2 cycles=60",
                  "utilisation/p0/lost count=1 cycles=50"));
}

TEST(Affinity, ResidencyEndsAtMigration) {
  //   cycle  10    20       25     30    40         50    65       70
  //   p0     d1v0                  d1v0
  //   p1                                            d1v0           the trace ends
  //   d1v0   runs  blocked  woken  runs  preempted  runs  blocked
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)}), Rec(kRunningToBlocked, 20, {Vcpu(1, 0)}),
          Rec(kBlockedToRunnable, 25, {Vcpu(1, 0)}), Rec(kRunnableToRunning, 30, {Vcpu(1, 0)}),
          Rec(kRunningToRunnable, 40, {Vcpu(1, 0)})});
  trace.Window(1, {Rec(kRunnableToRunning, 50, {Vcpu(1, 0)}),
                   Rec(kRunningToBlocked, 65, {Vcpu(1, 0)}), Rec(kTickle, 70, {1})});
  EXPECT_THAT(VcpuLines(Analysed(trace, MakeAffinity), 1, 0),
              ElementsAre("affinity/all count=2 cycles=60", "affinity/all/p0 count=1 cycles=40",
                          "affinity/all/p1 count=1 cycles=20"));
}

TEST(Power, MeasuresIdleStatesAndFrequencies) {
  //   cycle  10        40       50         60        65       90         95       100
  //   p0     enter C2  leave C2            enter C1  leave C1            leave C3 the trace ends
  //   MHz    2400               1800                          2400
  TraceBuilder trace;
  trace.Window(0, {Rec(kIdleEntry, 10, {2, 1000, 5, 6}), Rec(kIdleExit, 40, {2, 1001, 0, 0, 0, 0}),
                   Rec(kFreqChange, 50, {2400, 1800}), Rec(kIdleEntry, 60, {1, 1002, 5, 6}),
                   Rec(kIdleExit, 65, {1, 1003, 0, 0, 0, 0}), Rec(kFreqChange, 90, {1800, 2400}),
                   Rec(kIdleExit, 95, {3, 1004, 0, 0, 0, 0}), Rec(kTickle, 100, {1})});
  EXPECT_THAT(Lines(Analysed(trace, MakePower).document.trace),
              ElementsAre("idle_states/p0", "idle_states/p0/C1 count=1 cycles=5",
                          "idle_states/p0/C2 count=1 cycles=30",
                          "idle_states/p0/left, entry not seen count=1", "frequencies/p0 changes=2",
                          "frequencies/p0/1800 MHz count=1 cycles=40",
                          "frequencies/p0/2400 MHz count=1 cycles=10",
                          "frequencies/p0/2400 MHz, until the first change count=1 cycles=40"));
}

TEST(Irqs, DurationSurvivesTscWrap) {
  //   cycle  10               20             30        31      40     50           60
  //   p0     IRQ 9, 32 long   IRQ 9, 50 long assigned  bound   moved  vector 0xf1
  //   p1                                                                           IRQ 9, 10 long
  TraceBuilder trace;
  trace.Window(0, {Rec(kIrqHandled, 10, {9, 0xfffffff0, 0x10}), Rec(kIrqHandled, 20, {9, 100, 150}),
                   Rec(kIrqAssignVector, 30, {9U | 0x41U << 16, 1}),
                   Rec(kIrqBindVector, 31, {9U | 0x41U << 16}),
                   Rec(kIrqMoveFinish, 40, {9, 0x31, 1}), Rec(kIrqUnmappedVector, 50, {0xf1})});
  trace.Window(1, {Rec(kIrqHandled, 60, {9, 200, 210})});
  EXPECT_THAT(
      Lines(Analysed(trace, MakeIrqs).document.trace),
      ElementsAre("irqs/irq 9 count=3 cycles=92", "irqs/irq 9/p0 count=2 cycles=82",
                  "irqs/irq 9/p1 count=1 cycles=10", "irq_vectors/irq 9 bound=1 assigned=1 moves=1",
                  "unmapped_vectors/vector 0xf1 count=1"));
}

// More numbers than any machine has, as in a damaged trace.
TEST(Irqs, NumbersBeyondTheLimitAreMerged) {
  TraceBuilder trace;
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i < 20'000; ++i) {
    records.push_back(Rec(kIrqHandled, 10 + i, {i, 0, 5}));
    records.push_back(Rec(kIrqMoveFinish, 10 + i, {i, 0x31, 1}));
    records.push_back(Rec(kIrqUnmappedVector, 10 + i, {i}));
  }
  trace.Window(0, records);
  const Section section = Analysed(trace, MakeIrqs).document.trace;
  for (const auto& [group, last] :
       {std::pair("irqs", "irqs/(others) count=3616 cycles=18080"),
        std::pair("irq_vectors", "irq_vectors/(others) moves=3616"),
        std::pair("unmapped_vectors", "unmapped_vectors/(others) count=3616")}) {
    const std::vector<std::string> lines = Lines(section, group);
    EXPECT_EQ(lines.back(), last);
  }
  EXPECT_EQ(Lines(section, "unmapped_vectors").size(), 16384U + 1);
}

TEST(Power, StatesBeyondTheLimitAreMerged) {
  TraceBuilder trace;
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i < 40; ++i) {
    records.push_back(Rec(kIdleEntry, 10 * i, {i, 0, 0, 0}));
    records.push_back(Rec(kIdleExit, 10 * i + 3, {i, 0, 0, 0, 0, 0}));
  }
  trace.Window(0, records);
  const std::vector<std::string> lines =
      Lines(Analysed(trace, MakePower).document.trace, "idle_states");
  EXPECT_EQ(lines.size(), 1U + 32 + 1);
  EXPECT_EQ(lines.back(), "idle_states/p0/(others) count=8 cycles=24");
}

TEST(Power, HasNoGroupWithoutItsRecords) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {Vcpu(1, 0)})});
  EXPECT_THAT(Lines(Analysed(trace, MakePower).document.trace), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::analysis
