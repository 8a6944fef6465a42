#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/summary/address_space.h"
#include "analysis/summary/registry.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/analysis/summary_lines.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::kOfflineToRunnable;
using trace::kRunningToOffline;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vendor;

constexpr uint32_t kPortRead = kIoportRead | k64Bit;
constexpr uint32_t kPortWrite = IdOf(trace::Event::kHvmIoportWrite) | k64Bit;

// A trace of d1v0 on pCPU 0, with exits 1000 cycles after the entry before:
//
//   cycle  10    20     1020                   1020 + length   ...
//   d1v0   runs  enter  exit, handler records  enter           ...
class Guest {
 public:
  Guest() : records_{Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 20, {})} {}
  // Adds an exit of `length` cycles, at the guest address 0xabc000 + the exit's number.
  Guest& Exit(uint32_t reason, uint64_t length, const std::vector<std::vector<uint32_t>>& inside,
              uint32_t event = kVmexit) {
    now_ += 1000;
    records_.push_back(Rec(event, now_, {reason, 0xabc000 + exits_++, 0}));
    records_.insert(records_.end(), inside.begin(), inside.end());
    now_ += length;
    records_.push_back(Rec(kVmentry, now_, {}));
    return *this;
  }
  Guest& Add(const std::vector<uint32_t>& record) {
    records_.push_back(record);
    return *this;
  }
  AnalysisResult Summarise(Vendor vendor) const {
    TraceBuilder trace;
    trace.Window(0, records_);
    return Analysed(trace, MakeExits, vendor);
  }

 private:
  std::vector<std::vector<uint32_t>> records_;
  uint64_t now_ = 20;
  uint32_t exits_ = 0;
};

TEST(Exits, AreBrokenDownByHandlerEventAndNumber) {
  Guest guest;
  guest.Exit(kVmxCpuid, 100, {Rec(kCpuid, {1, 0, 0, 0, 0, 0})})
      .Exit(kVmxCpuid, 300, {Rec(kCpuid, {0x40000000, 0, 0, 0, 0, 0})})
      .Exit(kVmxCpuid, 500, {Rec(kCpuid, {1, 7, 0, 0, 0, 0})})
      .Exit(kVmxMsrWrite, 10, {Rec(kMsrWrite, {0xc0000080, 0, 0})})
      .Exit(kVmxMsrWrite, 20, {Rec(kMsrWrite, {0x12345, 0, 0})})
      .Exit(kVmxVmcall, 7, {Rec(kVmmcall, {24})})
      .Exit(kVmxHlt, 3, {});
  EXPECT_THAT(
      VcpuLines(guest.Summarise(Vendor::kVmx), 1, 0, "exits"),
      ElementsAre("exits/CPUID count=3 cycles=900", "exits/CPUID/cpuid count=3 cycles=900",
                  "exits/CPUID/cpuid/leaf 0x1 count=2 cycles=600",
                  "exits/CPUID/cpuid/leaf 0x40000000 count=1 cycles=300",
                  "exits/HLT count=1 cycles=3", "exits/HLT/(no handler) count=1 cycles=3",
                  "exits/VMCALL count=1 cycles=7", "exits/VMCALL/hypercall count=1 cycles=7",
                  "exits/VMCALL/hypercall/vcpu_op count=1 cycles=7",
                  "exits/MSR_WRITE count=2 cycles=30",
                  "exits/MSR_WRITE/msr_write count=2 cycles=30",
                  "exits/MSR_WRITE/msr_write/0x12345 count=1 cycles=20",
                  "exits/MSR_WRITE/msr_write/EFER count=1 cycles=10"));
}

TEST(Exits, NestedExitsAreSeparate) {
  Guest guest;
  guest.Exit(kVmexitCpuid, 5, {Rec(kCpuid, {1, 0, 0, 0, 0, 0})})
      .Exit(kVmexitCpuid, 50, {Rec(kCpuid, {2, 0, 0, 0, 0, 0})}, kNestedVmexit);
  const AnalysisResult result = guest.Summarise(Vendor::kSvm);
  EXPECT_THAT(VcpuLines(result, 1, 0, "exits"),
              ElementsAre("exits/VMEXIT_CPUID count=1 cycles=5",
                          "exits/VMEXIT_CPUID/cpuid count=1 cycles=5",
                          "exits/VMEXIT_CPUID/cpuid/leaf 0x1 count=1 cycles=5"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "nested_exits"),
              ElementsAre("nested_exits/VMEXIT_CPUID count=1 cycles=50",
                          "nested_exits/VMEXIT_CPUID/cpuid count=1 cycles=50",
                          "nested_exits/VMEXIT_CPUID/cpuid/leaf 0x2 count=1 cycles=50"));
}

TEST(Exits, InterruptsOfSvmHaveNoVector) {
  Guest guest;
  guest.Exit(kVmexitIntr, 5, {Rec(kIntr, {})});
  const AnalysisResult svm = guest.Summarise(Vendor::kSvm);
  EXPECT_THAT(
      VcpuLines(svm, 1, 0, "exits"),
      ElementsAre("exits/VMEXIT_INTR count=1 cycles=5", "exits/VMEXIT_INTR/intr count=1 cycles=5",
                  "exits/VMEXIT_INTR/intr/(vector not recorded) count=1 cycles=5"));
  EXPECT_THAT(VcpuLines(svm, 1, 0, "interrupt_eip"),
              ElementsAre("interrupt_eip/0xabc000, (vector not recorded) count=1 cycles=5"));
}

TEST(Exits, InterruptsOfVmxAreCountedByVectorAndAddress) {
  Guest guest;
  guest.Exit(kVmxExternalInterrupt, 5, {Rec(kIntr, {0xfb})})
      .Exit(kVmxExternalInterrupt, 6, {Rec(kIntr, {0xfa})});
  const AnalysisResult vmx = guest.Summarise(Vendor::kVmx);
  EXPECT_THAT(VcpuLines(vmx, 1, 0, "exits"),
              ElementsAre("exits/EXTERNAL_INTERRUPT count=2 cycles=11",
                          "exits/EXTERNAL_INTERRUPT/intr count=2 cycles=11",
                          "exits/EXTERNAL_INTERRUPT/intr/vector 0xfa count=1 cycles=6",
                          "exits/EXTERNAL_INTERRUPT/intr/vector 0xfb count=1 cycles=5"));
  EXPECT_THAT(VcpuLines(vmx, 1, 0, "interrupt_eip"),
              ElementsAre("interrupt_eip/0xabc000, vector 0xfb count=1 cycles=5",
                          "interrupt_eip/0xabc001, vector 0xfa count=1 cycles=6"));
}

TEST(Exits, DeviceAccessesAreCountedByAddressToo) {
  Guest guest;
  guest.Exit(kVmxIoInstruction, 5, {Rec(kPortRead, {0x3f8, 0, 1, 0})})
      .Exit(kVmxEptViolation, 40,
            {Rec(kMmioRead, {0xfee00020, 0, 0, 0}), Rec(kMmioWrite, {0xfee00020, 0, 1, 0}),
             Rec(kNpf, {0xfee00020, 0, 0, 0, 0, 4})});
  const AnalysisResult result = guest.Summarise(Vendor::kVmx);
  EXPECT_THAT(VcpuLines(result, 1, 0, "exits"),
              ElementsAre("exits/IO_INSTRUCTION count=1 cycles=5",
                          "exits/IO_INSTRUCTION/io_read count=1 cycles=5",
                          "exits/IO_INSTRUCTION/io_read/0x3f8 (COM1) count=1 cycles=5",
                          "exits/EPT_VIOLATION count=1 cycles=40",
                          "exits/EPT_VIOLATION/mmio_read count=1 cycles=40",
                          "exits/EPT_VIOLATION/mmio_read/0xfee00020 (LAPIC ID) count=1 cycles=40"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "io_ports"),
              ElementsAre("io_ports/0x3f8 (COM1) read count=1 cycles=5"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "mmio"),
              ElementsAre("mmio/0xfee00020 (LAPIC ID) read count=1 cycles=40",
                          "mmio/0xfee00020 (LAPIC ID) write count=1 cycles=40"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "port_eip"),
              ElementsAre("port_eip/0xabc000, io_read 0x3f8 (COM1) count=1 cycles=5"));
  EXPECT_THAT(VcpuLines(result, 1, 0, "emulate_eip"),
              ElementsAre("emulate_eip/0xabc001, mmio_read count=1 cycles=40"));
}

TEST(Exits, PageFaultsAreCountedByTheOutcomeInTheShadow) {
  Guest guest;
  guest.Exit(kVmexitPageFault, 1, {Rec(kPfXen, {0, 0x1000, 0})})
      .Exit(kVmexitPageFault, 2,
            {Rec(kPfXen, {0, 0x1000, 0}), Rec(kShadowFixup, {0, 0, 0x1000, 0, 0})})
      .Exit(kVmexitPageFault, 4,
            {Rec(kPfXen, {0, 0x1000, 0}), Rec(kShadowEmulate, {0, 0, 0xc0000010, 0})})
      .Exit(kVmexitPageFault, 8,
            {Rec(kPfXen, {0, 0, 0}), Rec(kShadowEmulate, {0, 0, 0x1000, 0}),
             Rec(kUnshadowUser, {0, 0, 0x1000, 0})});
  EXPECT_THAT(
      VcpuLines(guest.Summarise(Vendor::kSvm), 1, 0, "exits"),
      ElementsAre("exits/VMEXIT_EXCEPTION_PF count=4 cycles=15",
                  "exits/VMEXIT_EXCEPTION_PF/page_fault count=4 cycles=15",
                  "exits/VMEXIT_EXCEPTION_PF/page_fault/(no case recorded) count=1 cycles=1",
                  "exits/VMEXIT_EXCEPTION_PF/page_fault/fixup count=1 cycles=2",
                  "exits/VMEXIT_EXCEPTION_PF/page_fault/unshadow: user count=1 cycles=8",
                  "exits/VMEXIT_EXCEPTION_PF/page_fault/emulate, level 1 entry count=1 cycles=4"));
}

TEST(Exits, PageFaultsAreCountedByTheFlagsOfTheShadow) {
  constexpr uint32_t kPromote = 1 << 9;
  constexpr uint32_t kWrmap = 1 << 10;
  constexpr uint32_t kUnsync = 1 << 18;
  constexpr uint32_t kEmulations = 3U << 29;  // not a flag
  Guest guest;
  guest
      .Exit(kVmexitPageFault, 1,
            {Rec(kPfXen, {0, 0x1000, 0}), Rec(kShadowFixup, {0, 0, 0x1000, 0, 0})})
      .Exit(kVmexitPageFault, 2,
            {Rec(kPfXen, {0, 0, 0}), Rec(kShadowFixup, {0, 0, 0, 0, kPromote | kWrmap})})
      .Exit(kVmexitPageFault, 4,
            {Rec(kPfXen, {0, 0, 0}), Rec(kShadowFixup, {0, 0, 0, 0, kPromote})})
      .Exit(kVmexitPageFault, 8,
            {Rec(kPfXen, {0, 0, 0}), Rec(kShadowEmulate, {0, 0, 0, kEmulations | kUnsync})});
  EXPECT_THAT(VcpuLines(guest.Summarise(Vendor::kSvm), 1, 0, "exits"),
              ElementsAre("exits/VMEXIT_EXCEPTION_PF count=4 cycles=15",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault count=4 cycles=15",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault/fixup count=3 cycles=7",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault/fixup/promote count=2 cycles=6",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault/fixup/wrmap count=1 cycles=2",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault/emulate count=1 cycles=8",
                          "exits/VMEXIT_EXCEPTION_PF/page_fault/emulate/unsync count=1 cycles=8"));
}

TEST(Exits, Cr3WritesThatResyncTheShadowAreSeparate) {
  Guest guest;
  guest.Exit(kVmxCrAccess, 1, {Rec(kCrWrite, {kCr3, 0x1000, 0}), Rec(kResyncFull, {1, 0})})
      .Exit(kVmxCrAccess, 2, {Rec(kCrWrite, {kCr3, 0x2000, 0})})
      .Exit(kVmxCrAccess, 4, {Rec(kCrWrite, {0, 1, 0})});
  EXPECT_THAT(
      VcpuLines(guest.Summarise(Vendor::kVmx), 1, 0, "exits"),
      ElementsAre("exits/CR_ACCESS count=3 cycles=7", "exits/CR_ACCESS/cr_write count=3 cycles=7",
                  "exits/CR_ACCESS/cr_write/cr0 count=1 cycles=4",
                  "exits/CR_ACCESS/cr_write/cr3 count=1 cycles=2",
                  "exits/CR_ACCESS/cr_write/cr3, resync count=1 cycles=1"));
}

TEST(Exits, RecordAfterDeschedulingBelongsToExit) {
  //   cycle  100       110      150    160                    170
  //   d1v0   exit: IO  blocked  woken  runs, read of port 60  enter
  Guest guest;
  guest.Add(Rec(kVmexit, 100, {kVmxIoInstruction, 0xabc, 0}))
      .Add(Rec(kRunningToBlocked, 110, {kD1V0}))
      .Add(Rec(kBlockedToRunnable, 150, {kD1V0}))
      .Add(Rec(kRunnableToRunning, 160, {kD1V0}))
      .Add(Rec(kPortRead, {0x60, 0, 1, 0}))
      .Add(Rec(kVmentry, 170, {}));
  const AnalysisResult result = guest.Summarise(Vendor::kVmx);
  EXPECT_THAT(VcpuLines(result, 1, 0, "io_ports"),
              ElementsAre("io_ports/0x60 (keyboard) read count=1 cycles=50"));
}

TEST(Exits, WaitsForDeviceModelBelongToAccess) {
  //   cycle  100      110      150    160                   170    180         184      190    195
  //   197 d1v0   exit: 60 offline  woken  runs, read of port 60 enter  write of 3f8 offline  woken
  //   runs enter
  // An exit that is no access waits, too: its domain is paused.
  Guest guest;
  guest.Add(Rec(kVmexit, 100, {kVmxIoInstruction, 0xabc, 0}))
      .Add(Rec(kRunningToOffline, 110, {kD1V0}))
      .Add(Rec(kOfflineToRunnable, 150, {kD1V0}))
      .Add(Rec(kRunnableToRunning, 160, {kD1V0}))
      .Add(Rec(kPortRead, {0x60, 0, 1, 0}))
      .Add(Rec(kVmentry, 170, {}))
      .Add(Rec(kVmexit, 180, {kVmxIoInstruction, 0xabd, 0}))
      .Add(Rec(kPortWrite, {0x3f8, 0, 1, 0}))
      .Add(Rec(kRunningToOffline, 184, {kD1V0}))
      .Add(Rec(kOfflineToRunnable, 190, {kD1V0}))
      .Add(Rec(kRunnableToRunning, 195, {kD1V0}))
      .Add(Rec(kVmentry, 197, {}))
      .Add(Rec(kVmexit, 200, {kVmxCpuid, 0xabe, 0}))
      .Add(Rec(kRunningToOffline, 210, {kD1V0}))
      .Add(Rec(kOfflineToRunnable, 290, {kD1V0}))
      .Add(Rec(kRunnableToRunning, 295, {kD1V0}))
      .Add(Rec(kVmentry, 297, {}));
  const AnalysisResult result = guest.Summarise(Vendor::kVmx);
  EXPECT_THAT(VcpuLines(result, 1, 0, "io_ports"),
              ElementsAre("io_ports/0x60 (keyboard) read count=1 cycles=50 waits=1 waited=40",
                          "io_ports/0x3f8 (COM1) write count=1 cycles=10 waits=1 waited=6"));
}

TEST(Exits, IncompleteExitsAreSeparate) {
  //   cycle  20                   100
  //   d1v0   cpuid without exit   exit: CPUID, then the trace ends
  Guest guest;
  guest.Add(Rec(kCpuid, {1, 0, 0, 0, 0, 0})).Add(Rec(kVmexit, 100, {kVmxCpuid, 0xabc, 0}));
  const AnalysisResult result = guest.Summarise(Vendor::kVmx);
  EXPECT_THAT(VcpuLines(result, 1, 0, "exits"), IsEmpty());
  EXPECT_THAT(VcpuLines(result, 1, 0, "exit_edges"),
              ElementsAre("exit_edges/cut off by a loss or the end count=1 cycles=0",
                          "exit_edges/handler records without a VMEXIT count=1"));
}

TEST(Exits, NumbersBeyondTheLimitAreMerged) {
  Guest guest;
  for (uint32_t port = 0; port < 1100; ++port) {
    guest.Exit(kVmxIoInstruction, 1, {Rec(kPortRead, {port, 0, 0, 0})});
  }
  const AnalysisResult result = guest.Summarise(Vendor::kVmx);
  const auto ports = VcpuLines(result, 1, 0, "io_ports");
  ASSERT_EQ(ports.size(), 1025U);
  EXPECT_EQ(ports.back(), "io_ports/(others) read count=76 cycles=76");
  const auto exits = VcpuLines(result, 1, 0, "exits");
  EXPECT_EQ(exits.front(), "exits/IO_INSTRUCTION count=1100 cycles=1100");
  EXPECT_EQ(exits.back(), "exits/IO_INSTRUCTION/(others) count=76 cycles=76");
}

}  // namespace
}  // namespace xenoscope::analysis
