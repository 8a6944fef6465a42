// The trace of a recording, or a bare one, and what is known of it.
#include "profile/trace_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "fake_recording.h"

namespace xenoscope::profile {
namespace {

const std::string kSmall = XENOSCOPE_TEST_DATA "/small.xeno";

TraceRequest RequestFor(const std::string& path) {
  TraceRequest request;
  request.path = path;
  return request;
}

TEST(TraceInputTest, TakesClockVersionAndNamesFromRecording) {
  std::vector<std::string> warnings;
  const auto input = OpenTraceInput(RequestFor(kSmall), warnings);
  ASSERT_TRUE(input.ok()) << input.status();
  ASSERT_TRUE(input->clock);
  EXPECT_EQ(input->clock->hz, 2'599'998'000U);
  EXPECT_EQ(input->dialect.vendor, trace::Vendor::kSvm);
  EXPECT_EQ(input->dialect.from_version, trace::MakeVersion(4, 17));
  EXPECT_EQ(input->DomainName(DomainId{2}), "pvh");
}

TEST(TraceInputTest, ReadsCompressedBareTrace) {
  std::vector<std::string> warnings;
  const auto input = OpenTraceInput(RequestFor(kSmall + "/trace.xentrace.zst"), warnings);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_FALSE(input->clock);
  EXPECT_EQ(input->info(), nullptr);
  EXPECT_EQ(input->DomainName(DomainId{2}), "");
  EXPECT_EQ(input->dialect.vendor, trace::Vendor::kUnknown);
  // Its records show the vendor.
  EXPECT_EQ(CompleteDialect(input->dialect, input->trace).vendor, trace::Vendor::kSvm);
}

TEST(TraceInputTest, OptionsOverrideRecordedValues) {
  TraceRequest request = RequestFor(kSmall);
  request.clock = Clock{1'000'000, ClockSource::kGiven};
  request.dialect.vendor = trace::Vendor::kVmx;
  request.dialect.vendor_source = trace::DialectSource::kGiven;
  std::vector<std::string> warnings;
  const auto input = OpenTraceInput(request, warnings);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->clock->hz, 1'000'000U);
  EXPECT_EQ(input->dialect.vendor, trace::Vendor::kVmx);
  EXPECT_EQ(CompleteDialect(input->dialect, input->trace).vendor, trace::Vendor::kVmx);
}

TEST(TraceInputTest, RefusesOffsetOfMissingPcpu) {
  TraceRequest request = RequestFor(kSmall);
  request.tsc_offsets[PcpuId{77}] = 5;
  std::vector<std::string> warnings;
  EXPECT_FALSE(OpenTraceInput(request, warnings).ok());
}

TEST(TraceInputTest, RecordingWithoutTraceIsNotFound) {
  FakeRecording made;
  made.Sample(1, 2, 0x10);
  std::vector<std::string> warnings;
  EXPECT_TRUE(absl::IsNotFound(OpenTraceInput(RequestFor(made.Open().path()), warnings).status()));
}

TEST(RecordedDialectTest, UnknownProcessorHasNoVendor) {
  recording::RecordingInfo info;
  info.xen.version = "4.15.2";
  const trace::Dialect dialect = RecordedDialect(info);
  EXPECT_EQ(dialect.vendor, trace::Vendor::kUnknown);
  EXPECT_EQ(dialect.from_version, trace::MakeVersion(4, 15));
}

}  // namespace
}  // namespace xenoscope::profile
