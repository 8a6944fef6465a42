#include "trace/dialect.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/record_ids.h"

namespace xenoscope::trace {
namespace {

// Makes records, and owns their words: their addresses do not change.
class Records {
 public:
  const Record& Make(uint32_t id, std::vector<uint32_t> words, uint64_t tsc = 0,
                     uint32_t pcpu = 0) {
    words_.push_back(std::move(words));
    Record record;
    record.id = id;
    record.event = Classify(id);
    record.tsc = Tsc{tsc};
    record.pcpu = PcpuId{pcpu};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): words as bytes
    record.payload = Payload(reinterpret_cast<const std::byte*>(words_.back().data()),
                             static_cast<uint32_t>(words_.back().size()));
    records_.push_back(record);
    return records_.back();
  }

 private:
  std::deque<std::vector<uint32_t>> words_;
  std::deque<Record> records_;
};

struct Evidence {
  uint32_t id;
  std::vector<uint32_t> words;
};

Dialect Conclude(const std::vector<Evidence>& evidence) {
  Records records;
  DialectEvidence accumulated;
  for (const Evidence& e : evidence) accumulated.Observe(records.Make(e.id, e.words));
  return accumulated.Conclude();
}

TEST(Dialect, UnknownWithoutRecords) {
  const Dialect dialect = Conclude({});
  EXPECT_EQ(dialect.vendor, Vendor::kUnknown);
  EXPECT_EQ(dialect.version_source, DialectSource::kUnknown);
  EXPECT_EQ(VersionText(dialect), "any");
}

TEST(Dialect, InfersVendorFromExitReasons) {
  EXPECT_EQ(Conclude({{kVmexit64, {kVmexitCpuid, 0, 0}}}).vendor, Vendor::kSvm);
  EXPECT_EQ(Conclude({{kVmexit64, {kVmexitNpf, 0, 0}}}).vendor, Vendor::kSvm);
  EXPECT_EQ(Conclude({{kVmexit64, {kVmxHlt, 0, 0}}}).vendor, Vendor::kVmx);
  EXPECT_EQ(Conclude({{kVmexit64, {kVmxEntryFailed | 33, 0, 0}}}).vendor, Vendor::kUnknown);
  // 0x10 is CR0_WRITE of SVM and RDTSC of VMX.
  EXPECT_EQ(Conclude({{kVmexit64, {kVmexitCr0Write, 0, 0}}}).vendor, Vendor::kUnknown);
  EXPECT_EQ(Conclude({{kHvmIntr, {0xf3}}}).vendor, Vendor::kVmx);
  EXPECT_EQ(Conclude({{kHvmIntr, {}}}).vendor, Vendor::kSvm);
  // Contradictory evidence stays unknown.
  EXPECT_EQ(Conclude({{kHvmIntr, {}}, {kVmexit64, {kVmxHlt, 0, 0}}}).vendor, Vendor::kUnknown);
}

TEST(Dialect, SvmExitEventImpliesXen419) {
  const Dialect dialect = Conclude({{kSvmExit64, {kVmexitCpuid, 0, 0}}});
  EXPECT_EQ(dialect.vendor, Vendor::kSvm);
  EXPECT_EQ(VersionText(dialect), "4.19 or later");
  EXPECT_EQ(dialect.version_source, DialectSource::kInferred);
  EXPECT_EQ(VersionText(Conclude({{kVmexit64, {kVmexitCpuid, 0, 0}}})), "before 4.19");
}

TEST(Dialect, InfersVersionFromRecordSizes) {
  EXPECT_EQ(VersionText(Conclude({{kSchedSwitchInfprev, {0, 0}}})), "before 4.8");
  EXPECT_EQ(VersionText(Conclude({{kSchedSwitchInfprev, {0, 0, 0}}})), "4.8 or later");
  EXPECT_EQ(VersionText(Conclude({{kSchedSwitchInfcont, {0, 0, 0, 0}}})), "4.9 or later");
  EXPECT_EQ(VersionText(Conclude({{kCsched2CreditReset, {0, 0, 0, 0}}})), "before 4.11");
  EXPECT_EQ(VersionText(Conclude({{kCsched2RunqCandidate, {0, 0, 0, 0}}})), "4.9 to 4.10");
  EXPECT_EQ(VersionText(Conclude({{kHvmCpuid, {0, 0, 0, 0, 0}}})), "before 4.13");
  EXPECT_EQ(VersionText(Conclude({{kShadowEmulateUnshadowUser | kFourLevels, {0, 0, 0, 0, 0}}})),
            "4.19 or later");
  EXPECT_EQ(VersionText(Conclude({{kShadowEmulateUnshadowUser, {0, 0}}})), "before 4.19");
  EXPECT_EQ(VersionText(Conclude({{kPvMathStateRestore, {}}})), "before 4.22");
  // No version writes both.
  const Dialect impossible =
      Conclude({{kSchedSwitchInfprev, {0, 0}}, {kSchedSwitchInfcont, {0, 0, 0, 0}}});
  EXPECT_EQ(impossible.version_source, DialectSource::kUnknown);
}

TEST(Dialect, InfersVersionFromMemoryRecords) {
  EXPECT_EQ(VersionText(Conclude({{kMemDecreaseReservation, {0, 0, 0x00090007, 0}}})),
            "before 4.18");
  EXPECT_EQ(VersionText(Conclude({{kMemPodPopulate, {0, 0, 0, 0, 7, 0xffff8300}}})), "before 4.18");
  const std::vector<Evidence> orders(8, {kMemDecreaseReservation, {0, 0, 7, 9}});
  EXPECT_EQ(VersionText(Conclude(orders)), "4.18 or later");
  // Records of single pages by Xen before 4.18 whose padding happens to be 0 look the same.
  const std::vector<Evidence> pages(8, {kMemDecreaseReservation, {0, 0, 7, 0}});
  EXPECT_EQ(VersionText(Conclude(pages)), "any");
}

TEST(Dialect, FormatsVersions) {
  EXPECT_EQ(ParseXenVersion("4.17"), XenVersion{417});
  EXPECT_EQ(ParseXenVersion("4.17.7-pre"), XenVersion{417});
  EXPECT_EQ(ParseXenVersion("4.8-unstable"), XenVersion{408});
  EXPECT_EQ(ParseXenVersion("4"), std::nullopt);
  EXPECT_EQ(ParseXenVersion("4.x"), std::nullopt);
  EXPECT_EQ(ParseXenVersion("4.17a"), std::nullopt);
  EXPECT_EQ(ParseXenVersion(""), std::nullopt);
  Dialect dialect;
  dialect.SetVersion(417, DialectSource::kGiven);
  EXPECT_EQ(VersionText(dialect), "4.17");
}

// The records of a pCPU that switches between d1v0 and d2v0. Next adds a switch `cycles` after the
// last one, at which Xen logs a runtime of `nanoseconds`.
class Switches {
 public:
  void Next(uint64_t cycles, uint32_t nanoseconds) {
    tsc_ += cycles;
    const uint32_t other = 3 - domain_;
    evidence.Observe(records_.Make(kSchedSwitchInfprev, {domain_, 0, nanoseconds}, tsc_));
    evidence.Observe(records_.Make(kSchedSwitchInfnext, {other, 0, 0, 0}, tsc_ + 100));
    domain_ = other;
  }
  void Lose() { evidence.Observe(records_.Make(kLostRecords, {1, 0, 0, 0}, tsc_)); }

  ClockEvidence evidence;

 private:
  Records records_;
  uint64_t tsc_ = 1'000'000;
  uint32_t domain_ = 1;
};

TEST(Clock, EstimatesFrequencyFromSchedSwitches) {
  Switches switches;
  for (int i = 0; i <= 2000; ++i) {
    // Alternating delays of a microsecond: they cancel except for the first and the last.
    switches.Next(i % 2 == 0 ? 2'300'000 : 2'304'600, 1'001'000);
  }
  ASSERT_TRUE(switches.evidence.Enough());
  const auto estimate = switches.evidence.Conclude();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_NEAR(static_cast<double>(estimate->hz), 2.3e9, 2.3e9 * 1e-5);
  EXPECT_EQ(estimate->intervals, 2000U);
  EXPECT_LT(estimate->relative_error, 1e-5);
}

TEST(Clock, SkipsIncompleteIntervals) {
  Switches switches;
  switches.Next(0, 7);
  for (int i = 0; i < 100; ++i) {
    switches.Next(2'300'000, 1'000'000);
    switches.Lose();
    switches.Next(9'000'000, 1'000'000);      // records between were lost
    switches.Next(3'000'000'000, 1'000'000);  // long enough for the runtime to have wrapped
  }
  const auto estimate = switches.evidence.Conclude();
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->hz, 2'300'000'000U);
  EXPECT_EQ(estimate->intervals, 100U);
}

TEST(Clock, NeedsEnoughIntervals) {
  Switches switches;
  switches.Next(0, 7);
  switches.Next(2'300'000, 1'000'000);
  EXPECT_FALSE(switches.evidence.Conclude().has_value());
}

}  // namespace
}  // namespace xenoscope::trace
