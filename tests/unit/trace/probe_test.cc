#include "trace/probe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/record_ids.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {
namespace {

// A vCPU runs for 10 seconds, and exits after 1 and, for another reason, 9 seconds.
Dialect VendorOf(std::optional<uint32_t> first, std::optional<uint32_t> second) {
  constexpr uint64_t kSecond = uint64_t{1} << 31;
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, kSecond, {kD1V0})});
  if (first) trace.Window(0, {Rec(kVmexit64, 2 * kSecond, {*first, 0, 0})});
  if (second) trace.Window(0, {Rec(kVmexit64, 10 * kSecond, {*second, 0, 0})});
  trace.Window(0, {Rec(kRunningToRunnable, 11 * kSecond, {kD1V0})});
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  return FindVendor(*file);
}

TEST(Probe, FindsTheVendorInTheFirstExitThatShowsIt) {
  EXPECT_EQ(VendorOf(std::nullopt, kVmexitCpuid).vendor, Vendor::kSvm);
  EXPECT_EQ(VendorOf(std::nullopt, kVmxHlt).vendor, Vendor::kVmx);
  EXPECT_EQ(VendorOf(kVmexitPageFault, kVmexitHlt).vendor, Vendor::kSvm);
  EXPECT_EQ(VendorOf(kVmxHlt, kVmexitHlt).vendor, Vendor::kVmx);
  EXPECT_EQ(VendorOf(std::nullopt, std::nullopt).vendor_source, DialectSource::kUnknown);
}

}  // namespace
}  // namespace xenoscope::trace
