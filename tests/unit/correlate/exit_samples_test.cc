// Which VM exits are samples of the guest.
#include "correlate/exit_samples.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "correlate/nmi_matching.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using testing::ElementsAre;
using testing::IsEmpty;
using trace::kD1V0;
using trace::kHvmNmi;
using trace::kHvmTrap;
using trace::kNestedBit;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kSvmExit64;
using trace::kVmentry;
using trace::kVmexit64;
using trace::kVmexitCpuid;
using trace::kVmexitIntr;
using trace::kVmxExceptionNmi;
using trace::kVmxExternalInterrupt;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vendor;

// "d1v0 user 0x1100 [29, 30)", a line a sample.
std::vector<std::string> SamplesOf(const TraceBuilder& bytes, Vendor vendor) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  ExitSampleReader samples(*file, vendor);
  std::vector<std::string> lines;
  while (const Sample* sample = samples.Next()) {
    lines.push_back(fmt::format("{} {} {:#x} [{}, {})", ToString(sample->vcpu),
                                ToString(sample->mode), sample->address, sample->when.begin.value,
                                sample->when.end.value));
  }
  return lines;
}

// d1v0 runs from 10 on, enters the guest, and leaves it at 30 with these records.
TraceBuilder Leaves(const std::vector<std::vector<uint32_t>>& how) {
  std::vector<std::vector<uint32_t>> records{Rec(kRunnableToRunning, 10, {kD1V0}),
                                             Rec(kVmentry, 12, {})};
  records.insert(records.end(), how.begin(), how.end());
  records.push_back(Rec(kVmentry, 40, {}));
  records.push_back(Rec(kRunningToBlocked, 60, {kD1V0}));
  return TraceBuilder().Window(0, records);
}

TEST(ExitSamples, OnAmdHostInterruptsAreSamples) {
  EXPECT_THAT(SamplesOf(Leaves({Rec(kVmexit64, 30, {kVmexitIntr, 0x1100, 0})}), Vendor::kSvm),
              ElementsAre("d1v0 user 0x1100 [29, 30)"));
  EXPECT_THAT(
      SamplesOf(Leaves({Rec(kVmexit64, 30, {kSvmExitNmi, 0x1100, 0xffffffff})}), Vendor::kSvm),
      ElementsAre("d1v0 kernel 0xffffffff00001100 [29, 30)"));
  EXPECT_THAT(SamplesOf(Leaves({Rec(kVmexit64, 30, {kVmexitCpuid, 0x1100, 0})}), Vendor::kSvm),
              IsEmpty());
}

TEST(ExitSamples, OnIntelNmiRecordFollowsExceptionExit) {
  EXPECT_THAT(
      SamplesOf(Leaves({Rec(kVmexit64, 30, {kVmxExternalInterrupt, 0x1100, 0})}), Vendor::kVmx),
      ElementsAre("d1v0 user 0x1100 [29, 30)"));
  EXPECT_THAT(
      SamplesOf(Leaves({Rec(kVmexit64, 30, {kVmxExceptionNmi, 0x1100, 0}), Rec(kHvmNmi, {})}),
                Vendor::kVmx),
      ElementsAre("d1v0 user 0x1100 [29, 30)"));
  EXPECT_THAT(
      SamplesOf(Leaves({Rec(kVmexit64, 30, {kVmxExceptionNmi, 0x1100, 0}), Rec(kHvmTrap, {3})}),
                Vendor::kVmx),
      IsEmpty());
}

TEST(ExitSamples, EventImpliesVendorSinceXen419) {
  EXPECT_THAT(SamplesOf(Leaves({Rec(kSvmExit64, 30, {kVmexitIntr, 0x1100, 0})}), Vendor::kUnknown),
              ElementsAre("d1v0 user 0x1100 [29, 30)"));
}

TEST(ExitSamples, SkipsNestedGuests) {
  EXPECT_THAT(
      SamplesOf(Leaves({Rec(kVmexit64 | kNestedBit, 30, {kVmexitIntr, 0x1100, 0})}), Vendor::kSvm),
      IsEmpty());
}

TEST(ExitSamples, UnknownCurrentVcpuGivesUnknownDomain) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmexit64, 30, {kVmexitIntr, 0x1100, 0})});
  EXPECT_THAT(SamplesOf(trace, Vendor::kSvm), ElementsAre("d32756v0 user 0x1100 [29, 30)"));
}

}  // namespace
}  // namespace xenoscope::correlate
