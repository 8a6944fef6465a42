#include "trace/dialect.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace xenoscope::trace {
namespace {

// Records whose words stay where they are.
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
  EXPECT_EQ(Conclude({{0x81102, {0x72, 0, 0}}}).vendor, Vendor::kSvm);
  EXPECT_EQ(Conclude({{0x81102, {0x400, 0, 0}}}).vendor, Vendor::kSvm);
  EXPECT_EQ(Conclude({{0x81102, {12, 0, 0}}}).vendor, Vendor::kVmx);
  EXPECT_EQ(Conclude({{0x81102, {0x80000021, 0, 0}}}).vendor, Vendor::kUnknown);
  EXPECT_EQ(Conclude({{0x81102, {0x10, 0, 0}}}).vendor, Vendor::kUnknown);  // CR0 write or RDTSC
  EXPECT_EQ(Conclude({{0x8200f, {0xf3}}}).vendor, Vendor::kVmx);
  EXPECT_EQ(Conclude({{0x8200f, {}}}).vendor, Vendor::kSvm);
  // Contradictory evidence stays unknown.
  EXPECT_EQ(Conclude({{0x8200f, {}}, {0x81102, {12, 0, 0}}}).vendor, Vendor::kUnknown);
}

TEST(Dialect, SvmExitEventImpliesXen419) {
  const Dialect dialect = Conclude({{0x81103, {0x72, 0, 0}}});
  EXPECT_EQ(dialect.vendor, Vendor::kSvm);
  EXPECT_EQ(VersionText(dialect), "4.19 or later");
  EXPECT_EQ(dialect.version_source, DialectSource::kInferred);
  EXPECT_EQ(VersionText(Conclude({{0x81102, {0x72, 0, 0}}})), "before 4.19");
}

TEST(Dialect, InfersVersionFromRecordSizes) {
  EXPECT_EQ(VersionText(Conclude({{0x2800e, {0, 0}}})), "before 4.8");
  EXPECT_EQ(VersionText(Conclude({{0x2800e, {0, 0, 0}}})), "4.8 or later");
  EXPECT_EQ(VersionText(Conclude({{0x28011, {0, 0, 0, 0}}})), "4.9 or later");
  EXPECT_EQ(VersionText(Conclude({{0x22207, {0, 0, 0, 0}}})), "before 4.11");
  EXPECT_EQ(VersionText(Conclude({{0x22214, {0, 0, 0, 0}}})), "4.9 to 4.10");
  EXPECT_EQ(VersionText(Conclude({{0x8200e, {0, 0, 0, 0, 0}}})), "before 4.13");
  EXPECT_EQ(VersionText(Conclude({{0x40f209, {0, 0, 0, 0, 0}}})), "4.19 or later");
  EXPECT_EQ(VersionText(Conclude({{0x40f009, {0, 0}}})), "before 4.19");
  EXPECT_EQ(VersionText(Conclude({{0x201008, {}}})), "before 4.22");
  // Both at once cannot be.
  const Dialect impossible = Conclude({{0x2800e, {0, 0}}, {0x28011, {0, 0, 0, 0}}});
  EXPECT_EQ(impossible.version_source, DialectSource::kUnknown);
}

TEST(Dialect, InfersVersionFromMemoryRecords) {
  EXPECT_EQ(VersionText(Conclude({{0x10f005, {0, 0, 0x00090007, 0}}})), "before 4.18");
  EXPECT_EQ(VersionText(Conclude({{0x10f010, {0, 0, 0, 0, 7, 0xffff8300}}})), "before 4.18");
  const std::vector<Evidence> orders(8, {0x10f005, {0, 0, 7, 9}});
  EXPECT_EQ(VersionText(Conclude(orders)), "4.18 or later");
  // Single pages, and rubbish that happens to be 0: an old Xen's balloon writes thousands of these.
  const std::vector<Evidence> pages(8, {0x10f005, {0, 0, 7, 0}});
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

// A pCPU that switches between d1v0 and d2v0, `cycles` apart, each saying `nanoseconds`.
class Switches {
 public:
  void Next(uint64_t cycles, uint32_t nanoseconds) {
    tsc_ += cycles;
    const uint32_t other = 3 - domain_;
    evidence.Observe(records_.Make(0x2800e, {domain_, 0, nanoseconds}, tsc_));
    evidence.Observe(records_.Make(0x2800f, {other, 0, 0, 0}, tsc_ + 100));
    domain_ = other;
  }
  void Lose() { evidence.Observe(records_.Make(0x1f001, {1, 0, 0, 0}, tsc_)); }

  ClockEvidence evidence;

 private:
  Records records_;
  uint64_t tsc_ = 1'000'000;
  uint32_t domain_ = 1;
};

TEST(Clock, EstimatesFrequencyFromSchedSwitches) {
  Switches switches;
  for (int i = 0; i <= 2000; ++i) {
    // Delays of a microsecond, back and forth, that cancel but for the first and the last.
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
    switches.Next(9'000'000, 1'000'000);      // something between was lost
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
