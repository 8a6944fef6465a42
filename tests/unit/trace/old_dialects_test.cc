// What Xen 4.8 to 4.18 writes otherwise than later versions: that such records are of their events,
// that they tell of which versions they can be, and that they read as those wrote them.
//
// Sizes and fields are those of the structures in Xen's sources of these versions
// (xen/common/sched*/{credit2,rt,core}.c, xen/arch/x86/mm/p2m-pod.c, xen/common/memory.c,
// xen/include/asm-x86/hvm/trace.h, xen/arch/x86/mm/shadow/multi.c).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/trace/field_text.h"
#include "trace/dialect.h"
#include "trace/events.h"
#include "trace/fields.h"

namespace xenoscope::trace {
namespace {

struct Written {
  uint32_t id;
  Words words;
  std::string reads;
};

// A Xen by what only it and its neighbours write.
struct Xen {
  uint32_t minor;        // 4.minor
  std::string inferred;  // from all of its records together
  std::vector<Written> records;
};

const Written kInfprev = {0x2800e, {1, 2, 3}, "vcpu=d1v2 runtime_ns=3"};
const Written kInfnext = {
    0x2800f, {1, 2, 3, 30000000}, "vcpu=d1v2 runnable_ns=3 slice_ns=30000000"};
const Written kInfcont = {0x28011, {1, 2, 3, 4}, "vcpu=d1v2 runtime_ns=3 slice_ns=4"};
const Written kOldBurn = {0x22203, {0x00010002, 100, 0xfffffff6}, "vcpu=d1v2 credit=100 delta=-10"};
const Written kBurn = {
    0x22203, {0x00010002, 100, 5, 0xfffffff6}, "vcpu=d1v2 credit=100 budget=5 delta=-10"};
const Written kOldTickleCheck = {0x22205, {0x00010002, 100}, "vcpu=d1v2 credit=100"};
const Written kTickleCheck = {0x22205, {0x00010002, 100, 7}, "vcpu=d1v2 credit=100 score=7"};
const Written kOldReset = {
    0x22207, {0x00010002, 0xffffffff, 9, 1}, "vcpu=d1v2 start=-1 end=9 multiplier=1"};
const Written kReset = {0x22207, {0x00010002, 0xffffffff, 9}, "vcpu=d1v2 start=-1 end=9"};
const Written kOldRtdsBurn = {
    0x22803, {0x00010002, 4000, 0, 0xffffff9c}, "vcpu=d1v2 budget_ns=4000 delta_ns=-100"};
// The three bytes behind extratime are what was on Xen's stack.
const Written kRtdsBurn = {0x22803,
                           {0x00010002, 4000, 0, 0xffffff9c, 2, 0xdeadbe01},
                           "vcpu=d1v2 budget_ns=4000 delta_ns=-100 priority=2 extratime=1"};
const Written kOldReplenish = {
    0x22804, {0x00010002, 5000, 0, 4000, 0}, "vcpu=d1v2 deadline_ns=5000 budget_ns=4000"};
const Written kReplenish = {0x22804,
                            {0x00010002, 2, 5000, 0, 4000, 0},
                            "vcpu=d1v2 priority=2 deadline_ns=5000 budget_ns=4000"};
const Written kOldCpuid = {0x8200e, {1, 3, 4, 5, 6}, "leaf=0x1 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"};
const Written kCpuid = {
    0x8200e, {1, 2, 3, 4, 5, 6}, "leaf=0x1 subleaf=0x2 eax=0x3 ebx=0x4 ecx=0x5 edx=0x6"};
// Domain and order in one word, and a word of rubbish.
const Written kPod = {
    0x10f010, {1, 0, 2, 0, 0x00090003, 0xffff8300}, "gfn=0x1 mfn=0x2 dom=3 order=9"};
const Written kReclaim = {
    0x10f011, {1, 0, 2, 0, 0x00090003, 0xffff8300}, "gfn=0x1 mfn=0x2 dom=3 order=9"};
const Written kDecrease = {0x10f005, {1, 0, 0x00090003, 0xffff8300}, "gfn=0x1 dom=3 order=9"};
const Written kSplinter = {0x10f012, {1, 0, 0xdead0003, 0xffff8300}, "gfn=0x1 dom=3"};
const Written kUnshadow = {0x40f209, {1, 0, 2, 0}, "gfn=0x1 va=0x2"};
const Written kSvmExit = {0x81102, {0x72, 1, 2}, "exit_reason=114(VMEXIT_CPUID) rip=0x200000001"};
const Written kMathState = {0x201008, {}, ""};

const Xen kXens[] = {
    {8,
     "4.8",
     {kInfprev,
      kInfnext,
      kOldBurn,
      kOldTickleCheck,
      kOldReset,
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
      {0x22214, {0x00010002, 0xffffffff, 3}, "vcpu=d1v2 tickled_cpu=-1(none) skipped=3"}}},
    {9,
     "4.9",
     {kInfprev,
      kInfnext,
      kInfcont,
      kOldBurn,
      kOldTickleCheck,
      kOldReset,
      kOldCpuid,
      kPod,
      kUnshadow,
      kSvmExit,
      {0x22214,
       {0x00010002, 0xffffffff, 3, 100},
       "vcpu=d1v2 tickled_cpu=-1(none) skipped=3 credit=100"}}},
    {10,
     "4.10",
     {kInfprev,
      kInfnext,
      kInfcont,
      kBurn,
      kTickleCheck,
      kOldReset,
      kRtdsBurn,
      kReplenish,
      kOldCpuid,
      kPod,
      kSvmExit,
      {0x22214, {0x00010002, 1, 3, 100}, "vcpu=d1v2 tickled_cpu=1 skipped=3 credit=100"}}},
    {11,
     "4.11 to 4.12",
     {kInfprev,
      kInfnext,
      kInfcont,
      kBurn,
      kTickleCheck,
      kReset,
      kRtdsBurn,
      kReplenish,
      kOldCpuid,
      kPod,
      kDecrease,
      kUnshadow,
      kSvmExit,
      {0x22214, {0x00010002, 1, 0xffffff9c}, "vcpu=d1v2 tickled_cpu=1 credit=-100"}}},
    {13,
     "4.13 to 4.17",
     {kInfprev,
      kInfnext,
      kInfcont,
      kBurn,
      kTickleCheck,
      kReset,
      kRtdsBurn,
      kReplenish,
      kCpuid,
      kPod,
      kDecrease,
      kUnshadow,
      kSvmExit,
      {0x22214, {0x00010002, 1, 0xffffff9c}, "vcpu=d1v2 tickled_cpu=1 credit=-100"}}},
    {18,
     "4.13 to 4.18",  // what is new in 4.18 has the size of the old
     {kInfprev,
      kInfcont,
      kBurn,
      kReset,
      kCpuid,
      kUnshadow,
      kSvmExit,
      kMathState,
      {0x22803,
       {0x00010002, 4000, 0, 0xffffff9c, 2, 1},
       "vcpu=d1v2 budget_ns=4000 delta_ns=-100 priority=2 extratime=1"},
      {0x10f005, {1, 0, 3, 9}, "gfn=0x1 dom=3 order=9"},
      {0x10f010, {1, 0, 2, 0, 3, 9}, "gfn=0x1 mfn=0x2 dom=3 order=9"}}},
};

TEST(OldDialects, InfersVersionAndDecodesFields) {
  for (const Xen& xen : kXens) {
    SCOPED_TRACE(xen.minor);
    DialectEvidence evidence;
    for (const Written& written : xen.records) {
      const Record record = MakeRecord(written.id, written.words);
      const EventInfo& info = Info(record.event);
      EXPECT_NE(record.event, Event::kUnknown) << std::hex << written.id;
      EXPECT_GE(record.payload.count(), info.min_words) << info.name;
      EXPECT_LE(record.payload.count(), info.max_words) << info.name;
      evidence.Observe(record);
    }
    const Dialect inferred = evidence.Conclude();
    EXPECT_EQ(VersionText(inferred), xen.inferred);
    EXPECT_LE(inferred.from_version, MakeVersion(4, xen.minor));
    EXPECT_GT(inferred.before_version, MakeVersion(4, xen.minor));
    EXPECT_EQ(inferred.vendor, Vendor::kSvm);
    const Dialect given = Version(xen.minor, Vendor::kSvm);
    for (const Written& written : xen.records) {
      EXPECT_EQ(Text(written.id, written.words, given), written.reads) << std::hex << written.id;
      if (inferred.before_version > MakeVersion(4, 18)) continue;  // not told from 4.18's
      EXPECT_EQ(Text(written.id, written.words, inferred), written.reads) << std::hex << written.id;
    }
  }
}

}  // namespace
}  // namespace xenoscope::trace
