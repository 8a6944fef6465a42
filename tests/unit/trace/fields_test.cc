#include "trace/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/hypercalls.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/field_text.h"
#include "tests/unit/trace/record_ids.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::trace {
namespace {

constexpr uint32_t kD1V2 = Vcpu(1, 2);
constexpr uint32_t kD3V2 = Vcpu(3, 2);

struct Case {
  uint32_t id;
  Words words;
  std::string expected;
};

TEST(Fields, DecodesVersionIndependentLayouts) {
  const Case cases[] = {
      {kLostRecords, {5, 0x00020001, 0x11, 0x22}, "lost=5 current=d1v2 first_tsc=146028888081"},
      {kRunningToRunnable, {kD3V2}, "vcpu=d3v2 change=1"},
      {kRunnableToBlocked, {kD3V2, 1, 0, 2, 0}, "vcpu=d3v2 change=258 counter1=1 counter2=2"},
      {kContinueRunning, {Vcpu(kIdle, 0)}, "vcpu=d32767v0"},
      {kCschedAccountStart, {1, 2, 3}, "vcpu=d1v2 active=3"},
      {kCschedStolenVcpu, {7, 1, 2}, "from_cpu=7 vcpu=d1v2"},
      {kCschedSchedule, {0x01000003}, "cpu=3 tasklet=0 idle=1"},
      {kCschedRatelimit, {kD1V2, 9}, "vcpu=d1v2 runtime_ns=9"},
      {kCsched2CreditBurn,
       {kD1V2, 0xffffffff, 5, 0xfffffff0},
       "vcpu=d1v2 credit=-1 budget=5 delta=-16"},
      {kCsched2CreditBurn, {kD1V2, 0, 0xffffffff, 0}, "vcpu=d1v2 credit=0 budget=-1 delta=0"},
      {kCsched2CreditBurn,
       {kD1V2, 0, 0x80000000, 0},
       "vcpu=d1v2 credit=0 budget=-2147483648(none) delta=0"},
      {kCsched2CreditBurn, {kD1V2, 7, 8}, "vcpu=d1v2 credit=7 delta=8"},
      {kCsched2TickleCheck, {kD1V2, 7, 8}, "vcpu=d1v2 credit=7 score=8"},
      {kCsched2TickleCheck, {kD1V2, 7}, "vcpu=d1v2 credit=7"},
      {kCsched2Tickle, {0xdead0003}, "cpu=3"},
      {kCsched2CreditReset, {kD1V2, 7, 8}, "vcpu=d1v2 start=7 end=8"},
      {kCsched2CreditReset, {kD1V2, 7, 8, 9}, "vcpu=d1v2 start=7 end=8 multiplier=9"},
      {kCsched2RunqAssign, {kD1V2, 0xdead0004}, "vcpu=d1v2 runq=4"},
      {kCsched2UpdateUnitLoad, {1, 2, kD1V2, 18}, "avgload=8589934593 vcpu=d1v2 shift=18"},
      {kCsched2UpdateRunqLoad,
       {1, 0, 2, 0, 0x12040003, 0xdeadbeef},
       "runq_avgload=1 b_avgload=2 load=3 runq=4 shift=18"},
      {kCsched2LoadBalance,
       {1, 0, 2, 0, 0x00040003, 0xdead},
       "avgload=1 other_avgload=2 runq=3 other_runq=4"},
      {kCsched2PickedCpu, {1, 0, kD1V2, 0x00040003}, "b_avgload=1 vcpu=d1v2 runq=3 cpu=4"},
      {kCsched2RunqCandidate,
       {kD1V2, 0xffffffff, 3, 4},
       "vcpu=d1v2 tickled_cpu=-1(none) skipped=3 credit=4"},
      {kCsched2Schedule,
       {0x00020001, 0x01000100},
       "cpu=1 runq=2 tasklet=0 idle=1 smt_idle=0 tickled=1"},
      {kRtdsRunqPick, {kD1V2, 3, 0, 4, 0}, "vcpu=d1v2 deadline_ns=3 budget_ns=4"},
      {kRtdsBudgetBurn, {kD1V2, 3, 0, 0xffffffff}, "vcpu=d1v2 budget_ns=3 delta_ns=-1"},
      {kRtdsBudgetReplenish,
       {kD1V2, 1, 3, 0, 4, 0},
       "vcpu=d1v2 priority=1 deadline_ns=3 budget_ns=4"},
      {kRtdsBudgetReplenish, {kD1V2, 3, 0, 4, 0}, "vcpu=d1v2 deadline_ns=3 budget_ns=4"},
      {kRtdsSchedule, {0x12000003}, "cpu=3 tasklet=0 tickled=2 idle=1"},
      {kSnullMigrate, {kD1V2, 0x00040003}, "vcpu=d1v2 cpu=3 new_cpu=4"},
      {kSnullSchedule, {0x00040001, 0xffffffff}, "tasklet=1 cpu=4 vcpu=-1 dom=-1"},
      {kSchedSwitch, {1, 2, 3, 4}, "prev=d1v2 next=d3v4"},
      {kSchedSwitchInfprev, {1, 2, 3}, "vcpu=d1v2 runtime_ns=3"},
      {kSchedSwitchInfprev, {1, 3}, "dom=1 runtime_ns=3"},
      {kSchedSwitchInfnext, {1, 2, 3, 0xffffffff}, "vcpu=d1v2 runnable_ns=3 slice_ns=-1(none)"},
      {kSchedSwitchInfnext, {1, 3, 4}, "dom=1 runnable_ns=3 slice_ns=4"},
      {kSchedShutdown, {1, 2, 3}, "vcpu=d1v2 reason=3(crash)"},
      {kDom0DomAdd, {7}, "dom=7"},
      {kMemPageGrantMap, {7}, "dom=7"},
      {kMemSetP2mEntry,
       {1, 0, 2, 0, 3, 0x00090007},
       "gfn=0x1 mfn=0x2 p2mt=3(ram_ro) dom=7 order=9"},
      {kPvTrap,
       {0x1000, 0x0007800e},
       "eip=0x1000 trapnr=14(page_fault) use_error_code=1 "
       "error_code=0x7"},
      {kPvTrap | k64Bit,
       {0x1000, 1, 0x0000000d},
       "eip=0x100001000 trapnr=13(gp_fault) use_error_code=0 "
       "error_code=0x0"},
      {kPvPageFault, {1, 2, 3}, "eip=0x1 addr=0x2 error_code=0x3"},
      {kPvPageFault | k64Bit, {1, 0, 2, 0, 3}, "eip=0x1 addr=0x2 error_code=0x3"},
      {kPvEmulatePrivop | k64Bit, {1, 2}, "eip=0x200000001"},
      {kPvPtwrEmulation | k64Bit, {1, 0, 2, 0, 3, 0}, "npte=0x1 addr=0x2 eip=0x3"},
      {kPvPtwrEmulationPae, {1, 0, 2, 3}, "npte=0x1 addr=0x2 eip=0x3"},
      {kPvHypercallV2, {hypercall::kIret}, "op=23(iret)"},
      {kPvHypercallV2,
       {hypercall::kGrantTableOp | 1 << 20 | 1 << 24, 1, 9},
       "op=20(grant_table_op) a0=1(unmap_grant_ref) a2=9"},
      {kPvHypercallV2, {hypercall::kMmuUpdate | 2 << 22, 1, 2}, "op=1(mmu_update) a1=8589934593"},
      {kPvHypercallV2,
       {hypercall::kMmuextOp | 1 << 22, 0x80000002},
       "op=26(mmuext_op) a1=2147483650(preempted)"},
      {kPvHypercallSubcall, {hypercall::kSchedOp | 1 << 20, 1}, "op=29(sched_op) a0=1(block)"},
      {kPvHypercallV2, {hypercall::kMmuUpdate | 1 << 22, 1, 2}, "op=1(mmu_update) a1=1 args=2"},
      {kVmentry, {}, ""},
      {kVmentry | kNestedBit, {}, "nested=1"},
      {kSvmExit64, {kVmexitCpuid, 1, 2}, "exit_reason=114(VMEXIT_CPUID) rip=0x200000001"},
      {kSvmExit64 | kNestedBit,
       {kVmexitNpf, 1, 0},
       "exit_reason=1024(VMEXIT_NPF) rip=0x1 nested=1"},
      {kHvmSvmExit, {kVmexitHlt, 1}, "exit_reason=120(VMEXIT_HLT) rip=0x1"},
      {kHvmPfXen, {2, 3}, "error_code=0x2 va=0x3"},
      {kHvmPfXen | k64Bit, {2, 3, 1}, "error_code=0x2 va=0x100000003"},
      {kHvmCrRead | k64Bit, {4, 5, 6}, "cr=4 value=0x600000005"},
      {kHvmMsrRead, {0xc0000080, 5, 6}, "msr=3221225600(EFER) value=0x600000005"},
      {kHvmMsrWrite, {0x80b, 0, 0}, "msr=2059(X2APIC_EOI) value=0x0"},
      {kHvmCpuid, {1, 2, 3, 4, 5, 6}, "leaf=0x1 subleaf=0x2 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"},
      {kHvmCpuid, {1, 3, 4, 5, 6}, "leaf=0x1 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"},
      {kHvmIntr, {0xf3}, "vector=0xf3"},
      {kHvmIntr, {}, ""},
      {kHvmVmmcall, {hypercall::kVcpuOp}, "op=24(vcpu_op)"},
      {kHvmIoportRead, {0x84, 1}, "port=0x84 data=0x1"},
      {kHvmIoportWrite, {0x84}, "port=0x84"},
      {kHvmIomemRead | k64Bit, {1, 2, 3, 4}, "gpa=0x200000001 data=0x400000003"},
      {kHvmIomemWrite | k64Bit, {1, 2, 3}, "gpa=0x200000001 data=0x3"},
      {kHvmIomemWrite | k64Bit, {1, 2}, "gpa=0x200000001"},
      {kHvmRdtsc, {1, 2}, "value=0x200000001"},
      {kHvmIntrWindow, {0xf3, 2, 0xffffffff}, "vector=0xf3 source=2(lapic) pending=-1(none)"},
      {kHvmNpf,
       {1, 2, 3, 4, 5, 6},
       "gpa=0x200000001 mfn=0x400000003 qual=0x5 p2mt=6(populate_on_demand)"},
      {kHvmXcrRead | k64Bit, {0, 7, 0}, "xcr=0 value=0x7"},
      {kHvmEmulHpetStartTimer, {0, 2, 3, 0, 4, 0}, "timer=0 irq=2 delta_ns=3 period_ns=4"},
      {kHvmEmulLapicStartTimer, {3, 0, 4, 0, 5}, "delta_ns=3 period_ns=4 irq=5"},
      {kHvmEmulPicIntOutput, {1, 0, 0xffffffff}, "output=1 is_master=0 irq=-1(none)"},
      {kShadowFixup, {1, 2, 3}, "gl1e=0x1 va=0x2 flags=0x3"},
      {kShadowFixup | kThreeLevels, {1, 2, 3, 4}, "gl1e=0x200000001 va=0x3 flags=0x4"},
      {kShadowFixup | kFourLevels, {1, 2, 3, 4, 5}, "gl1e=0x200000001 va=0x400000003 flags=0x5"},
      {kShadowEmulate | kFourLevels,
       {1, 0, 2, 0, 3, 0, 0x40000001},
       "gl1e=0x1 write_val=0x2 va=0x3 flags=0x1 emulation_count=2"},
      {kShadowEmulateUnshadowUser | kFourLevels, {1, 0, 2, 0}, "gfn=0x1 va=0x2"},
      {kShadowEmulateUnshadowUser | kFourLevels, {1, 0, 2, 0, 3}, "gfn=0x1 va=0x2 flags=0x3"},
      {kPmIdleExit, {1, 2, 3, 4, 5, 6}, "cx=1 ticks=2 irq1=3 irq2=4 irq3=5 irq4=6"},
      {kHwIrqBindVector,
       {0x00300010, 1, 2, 3, 4, 5, 6},
       "irq=16 vector=0x30 mask=1 mask=2 mask=3 mask=4 "
       "mask=5 mask=6"},
      {kHwIrqHandled, {1, 2, 3}, "irq=1 start_tsc=2 end_tsc=3"},
      {GuestEvent(18), {1, 2}, "number=18 words=1 words=2"},
      {GuestEvent(18), {}, "number=18"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Text(c.id, c.words), c.expected) << std::hex << c.id;
  }
}

TEST(Fields, VersionSelectsLayout) {
  const Words pod = {1, 0, 2, 0, 0x00090007, 0xdeadbeef};
  EXPECT_EQ(Text(kMemPodPopulate, pod, Version(17)), "gfn=0x1 mfn=0x2 dom=7 order=9");
  EXPECT_EQ(Text(kMemPodPopulate, {1, 0, 2, 0, 7, 9}, Version(18)),
            "gfn=0x1 mfn=0x2 dom=7 order=9");
  EXPECT_EQ(Text(kMemDecreaseReservation, {1, 0, 0x00090007, 5}, Version(17)),
            "gfn=0x1 dom=7 order=9");
  EXPECT_EQ(Text(kMemDecreaseReservation, {1, 0, 7, 9}, Version(19)), "gfn=0x1 dom=7 order=9");
  EXPECT_EQ(Text(kMemPodSuperpageSplinter, {1, 0, 0xdead0007, 5}, Version(17)), "gfn=0x1 dom=7");
  EXPECT_EQ(Text(kMemPodSuperpageSplinter, {1, 0, 7, 9}, Version(18)), "gfn=0x1 dom=7 order=9");
  const Words burn = {kD1V2, 3, 0, 4, 5, 0xdeadbe01};
  EXPECT_EQ(Text(kRtdsBudgetBurn, burn, Version(17)),
            "vcpu=d1v2 budget_ns=3 delta_ns=4 priority=5 extratime=1");
  EXPECT_EQ(Text(kRtdsBudgetBurn, {kD1V2, 3, 0, 4, 5, 1}, Version(18)),
            "vcpu=d1v2 budget_ns=3 delta_ns=4 priority=5 extratime=1");
  EXPECT_EQ(Text(kCsched2RunqCandidate, {kD1V2, 1, 9}, Version(8)),
            "vcpu=d1v2 tickled_cpu=1 skipped=9");
  EXPECT_EQ(Text(kCsched2RunqCandidate, {kD1V2, 1, 9}, Version(12)),
            "vcpu=d1v2 tickled_cpu=1 credit=9");
}

TEST(Fields, VendorSelectsExitReasonNames) {
  EXPECT_EQ(Text(kVmexit64, {kVmexitCpuid, 1, 0}, Version(17, Vendor::kSvm)),
            "exit_reason=114(VMEXIT_CPUID) rip=0x1");
  EXPECT_EQ(Text(kVmexit64, {kVmxCpuid, 1, 0}, Version(17, Vendor::kVmx)),
            "exit_reason=10(CPUID) rip=0x1");
  EXPECT_EQ(Text(kVmexit64, {kVmxCpuid, 1, 0}, Version(17)), "exit_reason=10 rip=0x1");
  EXPECT_EQ(ExitReasonName(Vendor::kVmx, 62), "PML_FULL");
  EXPECT_EQ(ExitReasonName(Vendor::kVmx, kVmxEntryFailed | 33), "INVALID_GUEST_STATE");
  EXPECT_EQ(ExitReasonName(Vendor::kVmx, 0x1000), "");
  EXPECT_EQ(ExitReasonName(Vendor::kSvm, 0x8c), "VMEXIT_MWAIT_CONDITIONAL");
  EXPECT_EQ(ExitReasonName(Vendor::kSvm, 0xffffffff), "VMEXIT_INVALID");
  EXPECT_EQ(ExitReasonName(Vendor::kSvm, 0x300), "");
  EXPECT_EQ(HypercallName(42), "hypfs_op");
  EXPECT_EQ(HypercallName(55), "arch_7");
  EXPECT_EQ(HypercallName(56), "");
}

TEST(Fields, NamesXenEnumerators) {
  EXPECT_EQ(InterruptSourceName(0), "none");
  EXPECT_EQ(InterruptSourceName(5), "vector");
  EXPECT_EQ(InterruptSourceName(6), "");
  EXPECT_EQ(P2mTypeName(15), "ioreq_server");
  EXPECT_EQ(P2mTypeName(16), "");
  EXPECT_EQ(ShadowFlagName(2), "l1_get_ref");
  EXPECT_EQ(ShadowFlagName(20), "oos_fixup_evict");
  EXPECT_EQ(ShadowFlagName(21), "");
}

TEST(Fields, UnknownLayoutsDecodeToWords) {
  constexpr uint32_t kUnknownEvent = 0x8fff0;  // of class hvm
  EXPECT_EQ(Text(kVmexit64, {1, 2}), "words=1 words=2");
  EXPECT_EQ(Text(kUnknownEvent, {1, 2, 3, 4, 5, 6, 7}),
            "words=1 words=2 words=3 words=4 words=5 words=6 words=7");
}

TEST(Fields, DecodesEveryVariant) {
  const Words words(7, 0x01010101);
  for (size_t event = 1; event < kEventCount; ++event) {
    const EventInfo& info = Info(static_cast<Event>(event));
    const Layout& layout = LayoutOf(static_cast<Event>(event));
    for (uint8_t i = 0; i < layout.variant_count; ++i) {
      const Variant& variant = layout.variants[i];
      const uint32_t count = VariantWords(variant, info.id);
      const Words payload(words.begin(), words.begin() + count);  // the record points into it
      const Record record = MakeRecord(info.id, payload);
      Dialect dialect;
      dialect.from_version = variant.from_version;
      dialect.before_version = variant.before_version;
      EXPECT_NE(FindVariant(record, dialect), nullptr) << info.name;
      for (const Field& field : DecodeFields(record, dialect)) {
        EXPECT_NE(field.name, "words") << info.name;
        EXPECT_NE(field.name, "_") << info.name;
      }
    }
  }
}

}  // namespace
}  // namespace xenoscope::trace
