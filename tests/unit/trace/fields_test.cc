#include "trace/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/trace/field_text.h"

namespace xenoscope::trace {
namespace {

struct Case {
  uint32_t id;
  Words words;
  std::string expected;
};

TEST(Fields, DecodesVersionIndependentLayouts) {
  const Case cases[] = {
      {0x1f001, {5, 0x00020001, 0x11, 0x22}, "lost=5 current=d1v2 first_tsc=146028888081"},
      {0x21011, {0x00030002}, "vcpu=d3v2 change=1"},
      {0x21121, {0x00030002, 1, 0, 2, 0}, "vcpu=d3v2 change=258 counter1=1 counter2=2"},
      {0x21002, {0x7fff0000}, "vcpu=d32767v0"},
      {0x22002, {1, 2, 3}, "vcpu=d1v2 active=3"},
      {0x22004, {7, 1, 2}, "from_cpu=7 vcpu=d1v2"},
      {0x22009, {0x01000003}, "cpu=3 tasklet=0 idle=1"},
      {0x2200a, {0x00010002, 9}, "vcpu=d1v2 runtime_ns=9"},
      {0x22203, {0x00010002, 0xffffffff, 5, 0xfffffff0}, "vcpu=d1v2 credit=-1 budget=5 delta=-16"},
      {0x22203, {0x00010002, 0, 0xffffffff, 0}, "vcpu=d1v2 credit=0 budget=-1 delta=0"},
      {0x22203,
       {0x00010002, 0, 0x80000000, 0},
       "vcpu=d1v2 credit=0 budget=-2147483648(none) delta=0"},
      {0x22203, {0x00010002, 7, 8}, "vcpu=d1v2 credit=7 delta=8"},
      {0x22205, {0x00010002, 7, 8}, "vcpu=d1v2 credit=7 score=8"},
      {0x22205, {0x00010002, 7}, "vcpu=d1v2 credit=7"},
      {0x22206, {0xdead0003}, "cpu=3"},
      {0x22207, {0x00010002, 7, 8}, "vcpu=d1v2 start=7 end=8"},
      {0x22207, {0x00010002, 7, 8, 9}, "vcpu=d1v2 start=7 end=8 multiplier=9"},
      {0x2220a, {0x00010002, 0xdead0004}, "vcpu=d1v2 runq=4"},
      {0x2220b, {1, 2, 0x00010002, 18}, "avgload=8589934593 vcpu=d1v2 shift=18"},
      {0x2220c,
       {1, 0, 2, 0, 0x12040003, 0xdeadbeef},
       "runq_avgload=1 b_avgload=2 load=3 runq=4 shift=18"},
      {0x22211, {1, 0, 2, 0, 0x00040003, 0xdead}, "avgload=1 other_avgload=2 runq=3 other_runq=4"},
      {0x22213, {1, 0, 0x00010002, 0x00040003}, "b_avgload=1 vcpu=d1v2 runq=3 cpu=4"},
      {0x22214,
       {0x00010002, 0xffffffff, 3, 4},
       "vcpu=d1v2 tickled_cpu=-1(none) skipped=3 credit=4"},
      {0x22215, {0x00020001, 0x01000100}, "cpu=1 runq=2 tasklet=0 idle=1 smt_idle=0 tickled=1"},
      {0x22802, {0x00010002, 3, 0, 4, 0}, "vcpu=d1v2 deadline_ns=3 budget_ns=4"},
      {0x22803, {0x00010002, 3, 0, 0xffffffff}, "vcpu=d1v2 budget_ns=3 delta_ns=-1"},
      {0x22804, {0x00010002, 1, 3, 0, 4, 0}, "vcpu=d1v2 priority=1 deadline_ns=3 budget_ns=4"},
      {0x22804, {0x00010002, 3, 0, 4, 0}, "vcpu=d1v2 deadline_ns=3 budget_ns=4"},
      {0x22806, {0x12000003}, "cpu=3 tasklet=0 tickled=2 idle=1"},
      {0x22a04, {0x00010002, 0x00040003}, "vcpu=d1v2 cpu=3 new_cpu=4"},
      {0x22a05, {0x00040001, 0xffffffff}, "tasklet=1 cpu=4 vcpu=-1 dom=-1"},
      {0x2800a, {1, 2, 3, 4}, "prev=d1v2 next=d3v4"},
      {0x2800e, {1, 2, 3}, "vcpu=d1v2 runtime_ns=3"},
      {0x2800e, {1, 3}, "dom=1 runtime_ns=3"},
      {0x2800f, {1, 2, 3, 0xffffffff}, "vcpu=d1v2 runnable_ns=3 slice_ns=-1(none)"},
      {0x2800f, {1, 3, 4}, "dom=1 runnable_ns=3 slice_ns=4"},
      {0x28007, {1, 2, 3}, "vcpu=d1v2 reason=3(crash)"},
      {0x41001, {7}, "dom=7"},
      {0x10f001, {7}, "dom=7"},
      {0x10f004, {1, 0, 2, 0, 3, 0x00090007}, "gfn=0x1 mfn=0x2 p2mt=3(ram_ro) dom=7 order=9"},
      {0x201003,
       {0x1000, 0x0007800e},
       "eip=0x1000 trapnr=14(page_fault) use_error_code=1 "
       "error_code=0x7"},
      {0x201103,
       {0x1000, 1, 0x0000000d},
       "eip=0x100001000 trapnr=13(gp_fault) use_error_code=0 "
       "error_code=0x0"},
      {0x201004, {1, 2, 3}, "eip=0x1 addr=0x2 error_code=0x3"},
      {0x201104, {1, 0, 2, 0, 3}, "eip=0x1 addr=0x2 error_code=0x3"},
      {0x201106, {1, 2}, "eip=0x200000001"},
      {0x20110b, {1, 0, 2, 0, 3, 0}, "npte=0x1 addr=0x2 eip=0x3"},
      {0x20100c, {1, 0, 2, 3}, "npte=0x1 addr=0x2 eip=0x3"},
      {0x20100d, {23}, "op=23(iret)"},
      {0x20100d,
       {20 | 1 << 20 | 1 << 24, 1, 9},
       "op=20(grant_table_op) a0=1(unmap_grant_ref) a2=9"},
      {0x20100d, {1 | 2 << 22, 1, 2}, "op=1(mmu_update) a1=8589934593"},
      {0x20100d, {26 | 1 << 22, 0x80000002}, "op=26(mmuext_op) a1=2147483650(preempted)"},
      {0x20200e, {29 | 1 << 20, 1}, "op=29(sched_op) a0=1(block)"},
      {0x20100d, {1 | 1 << 22, 1, 2}, "op=1(mmu_update) a1=1 args=2"},
      {0x81001, {}, ""},
      {0x81401, {}, "nested=1"},
      {0x81103, {0x72, 1, 2}, "exit_reason=114(VMEXIT_CPUID) rip=0x200000001"},
      {0x81503, {0x400, 1, 0}, "exit_reason=1024(VMEXIT_NPF) rip=0x1 nested=1"},
      {0x81003, {0x78, 1}, "exit_reason=120(VMEXIT_HLT) rip=0x1"},
      {0x82001, {2, 3}, "error_code=0x2 va=0x3"},
      {0x82101, {2, 3, 1}, "error_code=0x2 va=0x100000003"},
      {0x82108, {4, 5, 6}, "cr=4 value=0x600000005"},
      {0x8200c, {0xc0000080, 5, 6}, "msr=3221225600(EFER) value=0x600000005"},
      {0x8200d, {0x80b, 0, 0}, "msr=2059(X2APIC_EOI) value=0x0"},
      {0x8200e, {1, 2, 3, 4, 5, 6}, "leaf=0x1 subleaf=0x2 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"},
      {0x8200e, {1, 3, 4, 5, 6}, "leaf=0x1 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"},
      {0x8200f, {0xf3}, "vector=0xf3"},
      {0x8200f, {}, ""},
      {0x82012, {24}, "op=24(vcpu_op)"},
      {0x82016, {0x84, 1}, "port=0x84 data=0x1"},
      {0x82216, {0x84}, "port=0x84"},
      {0x82117, {1, 2, 3, 4}, "gpa=0x200000001 data=0x400000003"},
      {0x82317, {1, 2, 3}, "gpa=0x200000001 data=0x3"},
      {0x82317, {1, 2}, "gpa=0x200000001"},
      {0x8201a, {1, 2}, "value=0x200000001"},
      {0x82020, {0xf3, 2, 0xffffffff}, "vector=0xf3 source=2(lapic) pending=-1(none)"},
      {0x82021,
       {1, 2, 3, 4, 5, 6},
       "gpa=0x200000001 mfn=0x400000003 qual=0x5 p2mt=6(populate_on_demand)"},
      {0x82126, {0, 7, 0}, "xcr=0 value=0x7"},
      {0x84001, {0, 2, 3, 0, 4, 0}, "timer=0 irq=2 delta_ns=3 period_ns=4"},
      {0x84004, {3, 0, 4, 0, 5}, "delta_ns=3 period_ns=4 irq=5"},
      {0x8400b, {1, 0, 0xffffffff}, "output=1 is_master=0 irq=-1(none)"},
      {0x40f006, {1, 2, 3}, "gl1e=0x1 va=0x2 flags=0x3"},
      {0x40f106, {1, 2, 3, 4}, "gl1e=0x200000001 va=0x3 flags=0x4"},
      {0x40f206, {1, 2, 3, 4, 5}, "gl1e=0x200000001 va=0x400000003 flags=0x5"},
      {0x40f208,
       {1, 0, 2, 0, 3, 0, 0x40000001},
       "gl1e=0x1 write_val=0x2 va=0x3 flags=0x1 emulation_count=2"},
      {0x40f209, {1, 0, 2, 0}, "gfn=0x1 va=0x2"},
      {0x40f209, {1, 0, 2, 0, 3}, "gfn=0x1 va=0x2 flags=0x3"},
      {0x801003, {1, 2, 3, 4, 5, 6}, "cx=1 ticks=2 irq1=3 irq2=4 irq3=5 irq4=6"},
      {0x802003,
       {0x00300010, 1, 2, 3, 4, 5, 6},
       "irq=16 vector=0x30 mask=1 mask=2 mask=3 mask=4 "
       "mask=5 mask=6"},
      {0x802008, {1, 2, 3}, "irq=1 start_tsc=2 end_tsc=3"},
      {0x800f012, {1, 2}, "number=18 words=1 words=2"},
      {0x800f012, {}, "number=18"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Text(c.id, c.words), c.expected) << std::hex << c.id;
  }
}

TEST(Fields, VersionSelectsLayout) {
  const Words pod = {1, 0, 2, 0, 0x00090007, 0xdeadbeef};
  EXPECT_EQ(Text(0x10f010, pod, Version(17)), "gfn=0x1 mfn=0x2 dom=7 order=9");
  EXPECT_EQ(Text(0x10f010, {1, 0, 2, 0, 7, 9}, Version(18)), "gfn=0x1 mfn=0x2 dom=7 order=9");
  EXPECT_EQ(Text(0x10f005, {1, 0, 0x00090007, 5}, Version(17)), "gfn=0x1 dom=7 order=9");
  EXPECT_EQ(Text(0x10f005, {1, 0, 7, 9}, Version(19)), "gfn=0x1 dom=7 order=9");
  EXPECT_EQ(Text(0x10f012, {1, 0, 0xdead0007, 5}, Version(17)), "gfn=0x1 dom=7");
  EXPECT_EQ(Text(0x10f012, {1, 0, 7, 9}, Version(18)), "gfn=0x1 dom=7 order=9");
  const Words burn = {0x00010002, 3, 0, 4, 5, 0xdeadbe01};
  EXPECT_EQ(Text(0x22803, burn, Version(17)),
            "vcpu=d1v2 budget_ns=3 delta_ns=4 priority=5 extratime=1");
  EXPECT_EQ(Text(0x22803, {0x00010002, 3, 0, 4, 5, 1}, Version(18)),
            "vcpu=d1v2 budget_ns=3 delta_ns=4 priority=5 extratime=1");
  EXPECT_EQ(Text(0x22214, {0x00010002, 1, 9}, Version(8)), "vcpu=d1v2 tickled_cpu=1 skipped=9");
  EXPECT_EQ(Text(0x22214, {0x00010002, 1, 9}, Version(12)), "vcpu=d1v2 tickled_cpu=1 credit=9");
}

TEST(Fields, VendorSelectsExitReasonNames) {
  EXPECT_EQ(Text(0x81102, {0x72, 1, 0}, Version(17, Vendor::kSvm)),
            "exit_reason=114(VMEXIT_CPUID) rip=0x1");
  EXPECT_EQ(Text(0x81102, {10, 1, 0}, Version(17, Vendor::kVmx)), "exit_reason=10(CPUID) rip=0x1");
  EXPECT_EQ(Text(0x81102, {10, 1, 0}, Version(17)), "exit_reason=10 rip=0x1");
  EXPECT_EQ(ExitReasonName(Vendor::kVmx, 62), "PML_FULL");
  EXPECT_EQ(ExitReasonName(Vendor::kVmx, 0x80000021), "INVALID_GUEST_STATE");
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
  EXPECT_EQ(Text(0x81102, {1, 2}), "words=1 words=2");
  EXPECT_EQ(Text(0x8fff0, {1, 2, 3, 4, 5, 6, 7}),
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
