#include "trace/probe.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/record_ids.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/dialect.h"
#include "trace/ordered_stream.h"
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

TEST(Probe, LooksForTheVendorUpToTheBytesThatItMayRead) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0})});
  for (uint64_t i = 0; i < 9; ++i) trace.Window(0, {Rec(kVmexit64, 2000 + i, {kVmxHlt, 0, 0})});
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(FindVendor(*file, 1).vendor, Vendor::kUnknown);  // the first window
  EXPECT_EQ(FindVendor(*file, 100).vendor, Vendor::kVmx);
}

// Returns eight records of the event with so many words, all of them 2, and a TSC if Xen gives one.
std::vector<std::vector<uint32_t>> RecordsOf(Event event, uint32_t words) {
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint64_t tsc = 1000 + i;
    std::vector<uint32_t>& record = records.emplace_back(
        Info(event).has_tsc ? Rec(IdOf(event), tsc, {}) : Rec(IdOf(event), {}));
    record[0] |= words << 28;
    record.insert(record.end(), words, 2);
  }
  return records;
}

// The probe passes over records that show nothing: it misses none that does.
TEST(Probe, TakesAllThatShowsTheDialect) {
  int shown = 0;
  for (size_t number = 1; number < kEventCount; ++number) {
    const auto event = static_cast<Event>(number);
    for (uint32_t words = Info(event).min_words; words <= Info(event).max_words; ++words) {
      SCOPED_TRACE(testing::Message() << Info(event).name << ", words: " << words);
      TraceBuilder trace;
      trace.Window(0, RecordsOf(event, words));
      const auto file = TraceFile::FromBytes(trace.bytes(), "test");
      ASSERT_TRUE(file.ok()) << file.status();
      DialectEvidence evidence;
      OrderedStream stream = file->Stream();
      while (const Item* item = stream.Next()) {
        if (item->kind == ItemKind::kRecord) evidence.Observe(item->record);
      }
      const Dialect expected = evidence.Conclude();
      const Dialect probed = ProbeTrace(*file).dialect;
      EXPECT_EQ(VersionText(probed), VersionText(expected));
      EXPECT_EQ(probed.vendor_source, expected.vendor_source);
      if (expected.vendor_source != DialectSource::kUnknown) ++shown;
      if (expected.version_source != DialectSource::kUnknown) ++shown;
    }
  }
  EXPECT_GE(shown, 20);
}

// Returns the number of domains that are seen in a trace in which vCPU 0 of each of these runs
// once, in a window of its own.
size_t DomainsSeenOf(const std::vector<uint32_t>& domains, size_t enough) {
  TraceBuilder trace;
  uint64_t now = 1000;
  for (const uint32_t domain : domains) {
    const uint32_t vcpu = domain << 16;
    trace.Window(0,
                 {Rec(kRunnableToRunning, now, {vcpu}), Rec(kRunningToRunnable, now + 1, {vcpu})});
    now += 10;
  }
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  return CountDomains(*file, enough);
}

TEST(Probe, CountsDomainsUpToEnough) {
  EXPECT_EQ(DomainsSeenOf({1, 2, kIdleDomain.value, 2, 1}, 21), 2U);
  std::vector<uint32_t> domains(21);
  std::iota(domains.begin(), domains.end(), 0U);
  EXPECT_EQ(DomainsSeenOf(domains, 22), 21U);
  EXPECT_EQ(DomainsSeenOf(domains, 21), 21U);
  EXPECT_EQ(DomainsSeenOf(domains, 20), 20U);
}

// A host of few domains is not searched for more.
TEST(Probe, LooksOnlyAtTheBeginningWhereFewDomainsRun) {
  constexpr size_t kBeyondTheFirstLook = 20'000;  // windows
  std::vector<uint32_t> domains(kBeyondTheFirstLook, 1);
  domains.resize(2 * kBeyondTheFirstLook, 2);
  EXPECT_EQ(DomainsSeenOf(domains, 21), 1U);
  EXPECT_EQ(DomainsSeenOf(domains, 3), 2U);
}

}  // namespace
}  // namespace xenoscope::trace
