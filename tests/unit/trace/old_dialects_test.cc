// Records that Xen 4.8 to 4.18 writes in another way than later versions: they have the right
// event, the possible versions are inferred from them, and their fields are decoded.
//
// The sizes and fields are those of the structures in Xen's sources of these versions
// (xen/common/sched*/{credit2,rt,core}.c, xen/arch/x86/mm/p2m-pod.c, xen/common/memory.c,
// xen/include/asm-x86/hvm/trace.h, xen/arch/x86/mm/shadow/multi.c).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/field_text.h"
#include "tests/unit/trace/record_ids.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/dialect.h"
#include "trace/events.h"
#include "trace/fields.h"

namespace xenoscope::trace {
namespace {

constexpr uint32_t kD1V2 = Vcpu(1, 2);

struct TestRecord {
  uint32_t id;
  Words words;
  std::string fields;  // as Text writes them
};

// A version of Xen and the records by which it is recognised.
struct Xen {
  uint32_t minor;        // 4.minor
  std::string inferred;  // the versions inferred from all the records
  std::vector<TestRecord> records;
};

const TestRecord kInfprev = {kSchedSwitchInfprev, {1, 2, 3}, "vcpu=d1v2 runtime_ns=3"};
const TestRecord kInfnext = {
    kSchedSwitchInfnext, {1, 2, 3, 30000000}, "vcpu=d1v2 runnable_ns=3 slice_ns=30000000"};
const TestRecord kInfcont = {
    kSchedSwitchInfcont, {1, 2, 3, 4}, "vcpu=d1v2 runtime_ns=3 slice_ns=4"};
const TestRecord kOldCreditBurn = {
    kCsched2CreditBurn, {kD1V2, 100, 0xfffffff6}, "vcpu=d1v2 credit=100 delta=-10"};
const TestRecord kCreditBurn = {
    kCsched2CreditBurn, {kD1V2, 100, 5, 0xfffffff6}, "vcpu=d1v2 credit=100 budget=5 delta=-10"};
const TestRecord kOldTickleCheck = {kCsched2TickleCheck, {kD1V2, 100}, "vcpu=d1v2 credit=100"};
const TestRecord kTickleCheck = {
    kCsched2TickleCheck, {kD1V2, 100, 7}, "vcpu=d1v2 credit=100 score=7"};
const TestRecord kOldCreditReset = {
    kCsched2CreditReset, {kD1V2, 0xffffffff, 9, 1}, "vcpu=d1v2 start=-1 end=9 multiplier=1"};
const TestRecord kCreditReset = {
    kCsched2CreditReset, {kD1V2, 0xffffffff, 9}, "vcpu=d1v2 start=-1 end=9"};
const TestRecord kOldRtdsBurn = {
    kRtdsBudgetBurn, {kD1V2, 4000, 0, 0xffffff9c}, "vcpu=d1v2 budget_ns=4000 delta_ns=-100"};
// The three bytes behind extratime are what was on Xen's stack.
const TestRecord kRtdsBurn = {kRtdsBudgetBurn,
                              {kD1V2, 4000, 0, 0xffffff9c, 2, 0xdeadbe01},
                              "vcpu=d1v2 budget_ns=4000 delta_ns=-100 priority=2 extratime=1"};
const TestRecord kOldReplenish = {
    kRtdsBudgetReplenish, {kD1V2, 5000, 0, 4000, 0}, "vcpu=d1v2 deadline_ns=5000 budget_ns=4000"};
const TestRecord kReplenish = {kRtdsBudgetReplenish,
                               {kD1V2, 2, 5000, 0, 4000, 0},
                               "vcpu=d1v2 priority=2 deadline_ns=5000 budget_ns=4000"};
const TestRecord kOldCpuid = {
    kHvmCpuid, {1, 3, 4, 5, 6}, "leaf=0x1 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"};
const TestRecord kCpuid = {
    kHvmCpuid, {1, 2, 3, 4, 5, 6}, "leaf=0x1 subleaf=0x2 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"};
// Domain and order in one word, and a word of rubbish.
const TestRecord kPod = {
    kMemPodPopulate, {1, 0, 2, 0, 0x00090003, 0xffff8300}, "gfn=0x1 mfn=0x2 dom=3 order=9"};
const TestRecord kReclaim = {
    kMemPodZeroReclaim, {1, 0, 2, 0, 0x00090003, 0xffff8300}, "gfn=0x1 mfn=0x2 dom=3 order=9"};
const TestRecord kDecrease = {
    kMemDecreaseReservation, {1, 0, 0x00090003, 0xffff8300}, "gfn=0x1 dom=3 order=9"};
const TestRecord kSplinter = {
    kMemPodSuperpageSplinter, {1, 0, 0xdead0003, 0xffff8300}, "gfn=0x1 dom=3"};
const TestRecord kUnshadow = {
    kShadowEmulateUnshadowUser | kFourLevels, {1, 0, 2, 0}, "gfn=0x1 va=0x2"};
const TestRecord kSvmExit = {
    kVmexit64, {kVmexitCpuid, 1, 2}, "exit_reason=114(VMEXIT_CPUID) rip=0x200000001"};
const TestRecord kMathState = {kPvMathStateRestore, {}, ""};

const Xen kXens[] = {
    {8,
     "4.8",
     {kInfprev,
      kInfnext,
      kOldCreditBurn,
      kOldTickleCheck,
      kOldCreditReset,
      kOldRtdsBurn,
      kOldReplenish,
      kOldCpuid,
      kPod,
      kReclaim,
      kDecrease,
      kSplinter,
      kUnshadow,
      kSvmExit,
      kMathState,
      {kCsched2RunqCandidate, {kD1V2, 0xffffffff, 3}, "vcpu=d1v2 tickled_cpu=-1(none) skipped=3"}}},
    {9,
     "4.9",
     {kInfprev,
      kInfnext,
      kInfcont,
      kOldCreditBurn,
      kOldTickleCheck,
      kOldCreditReset,
      kOldCpuid,
      kPod,
      kUnshadow,
      kSvmExit,
      {kCsched2RunqCandidate,
       {kD1V2, 0xffffffff, 3, 100},
       "vcpu=d1v2 tickled_cpu=-1(none) skipped=3 credit=100"}}},
    {10,
     "4.10",
     {kInfprev,
      kInfnext,
      kInfcont,
      kCreditBurn,
      kTickleCheck,
      kOldCreditReset,
      kRtdsBurn,
      kReplenish,
      kOldCpuid,
      kPod,
      kSvmExit,
      {kCsched2RunqCandidate, {kD1V2, 1, 3, 100}, "vcpu=d1v2 tickled_cpu=1 skipped=3 credit=100"}}},
    {11,
     "4.11 to 4.12",
     {kInfprev,
      kInfnext,
      kInfcont,
      kCreditBurn,
      kTickleCheck,
      kCreditReset,
      kRtdsBurn,
      kReplenish,
      kOldCpuid,
      kPod,
      kDecrease,
      kUnshadow,
      kSvmExit,
      {kCsched2RunqCandidate, {kD1V2, 1, 0xffffff9c}, "vcpu=d1v2 tickled_cpu=1 credit=-100"}}},
    {13,
     "4.13 to 4.17",
     {kInfprev,
      kInfnext,
      kInfcont,
      kCreditBurn,
      kTickleCheck,
      kCreditReset,
      kRtdsBurn,
      kReplenish,
      kCpuid,
      kPod,
      kDecrease,
      kUnshadow,
      kSvmExit,
      {kCsched2RunqCandidate, {kD1V2, 1, 0xffffff9c}, "vcpu=d1v2 tickled_cpu=1 credit=-100"}}},
    {18,
     "4.13 to 4.18",  // what is new in 4.18 has the size of the old
     {kInfprev,
      kInfcont,
      kCreditBurn,
      kCreditReset,
      kCpuid,
      kUnshadow,
      kSvmExit,
      kMathState,
      {kRtdsBudgetBurn,
       {kD1V2, 4000, 0, 0xffffff9c, 2, 1},
       "vcpu=d1v2 budget_ns=4000 delta_ns=-100 priority=2 extratime=1"},
      {kMemDecreaseReservation, {1, 0, 3, 9}, "gfn=0x1 dom=3 order=9"},
      {kMemPodPopulate, {1, 0, 2, 0, 3, 9}, "gfn=0x1 mfn=0x2 dom=3 order=9"}}},
};

TEST(OldDialects, InfersVersionAndDecodesFields) {
  for (const Xen& xen : kXens) {
    SCOPED_TRACE(xen.minor);
    DialectEvidence evidence;
    for (const TestRecord& record : xen.records) {
      const Record decoded = MakeRecord(record.id, record.words);
      const EventInfo& info = Info(decoded.event);
      EXPECT_NE(decoded.event, Event::kUnknown) << std::hex << record.id;
      EXPECT_GE(decoded.payload.count(), info.min_words) << info.name;
      EXPECT_LE(decoded.payload.count(), info.max_words) << info.name;
      evidence.Observe(decoded);
    }
    const Dialect inferred = evidence.Conclude();
    EXPECT_EQ(VersionText(inferred), xen.inferred);
    EXPECT_LE(inferred.from_version, MakeVersion(4, xen.minor));
    EXPECT_GT(inferred.before_version, MakeVersion(4, xen.minor));
    EXPECT_EQ(inferred.vendor, Vendor::kSvm);
    const Dialect given = Version(xen.minor, Vendor::kSvm);
    for (const TestRecord& record : xen.records) {
      EXPECT_EQ(Text(record.id, record.words, given), record.fields) << std::hex << record.id;
      if (inferred.before_version > MakeVersion(4, 18))
        continue;  // 4.18 is among the possible ones
      EXPECT_EQ(Text(record.id, record.words, inferred), record.fields) << std::hex << record.id;
    }
  }
}

}  // namespace
}  // namespace xenoscope::trace
