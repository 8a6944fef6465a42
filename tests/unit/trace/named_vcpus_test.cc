// Which vCPUs a stretch of a trace names, held against its records.
#include "trace/named_vcpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::trace {
namespace {

using Names = std::set<std::pair<uint32_t, VcpuRef>>;  // by whom, and who
using Records = std::vector<std::vector<uint32_t>>;

// What is behind all times of the tests, and enough for the cursors' fast paths.
void Close(Records& records) { records.insert(records.end(), 12, Rec(kVmentry, 9000, {})); }

// Returns a number below `end`.
uint32_t Below(uint32_t end, std::mt19937& random) { return static_cast<uint32_t>(random()) % end; }

// Returns what the pCPU may record before the time 1000: names of vCPUs, and what names none. Some
// records have no time of their own.
Records SomeRecords(std::mt19937& random) {
  Records records = {Rec(kVmentry, 1, {})};
  uint64_t tsc = 1;
  for (uint32_t count = Below(300, random); count > 0; --count) {
    tsc += Below(6, random);
    const uint32_t domain = Below(8, random) == 0 ? kIdle : Below(3, random);
    const uint32_t vcpu = Vcpu(domain, Below(40, random));
    switch (Below(8, random)) {
      case 0:
        records.push_back(Rec(kRunnableToRunning, tsc, {vcpu}));
        break;
      case 1:
        records.push_back(Rec(kContinueRunning, tsc, {vcpu}));
        break;
      case 2:
        records.push_back(Rec(kVmentry, {}));
        break;
      default:
        records.push_back(Rec(kVmexit64, tsc, {1, vcpu, 0}));
    }
  }
  Close(records);
  return records;
}

Names NamesIn(const NamedVcpus& found) {
  Names names;
  for (const NamedVcpus::Name& each : found.names) names.emplace(each.by.value, each.vcpu);
  return names;
}

TEST(NamedVcpus, AreThoseOfTheRecordsUpToATime) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const uint32_t pcpus = 1 + Below(5, random);
    TraceBuilder trace;
    for (uint32_t pcpu = 0; pcpu < pcpus; ++pcpu) trace.Window(pcpu, SomeRecords(random));
    const auto file = TraceFile::FromBytes(trace.bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const Tsc begin{1 + Below(300, random)};
    const Tsc through = begin + Below(1500, random);
    OrderedStream stream = file->Stream();
    while (!stream.Batch(begin).empty()) {
    }
    const auto found = stream.NamedUpTo(through);
    Names expected;
    uint64_t bytes = 0;
    for (auto batch = stream.Batch(through); !batch.empty(); batch = stream.Batch(through)) {
      for (const Item& item : batch) {
        const Record& record = item.record;
        bytes += record.SizeBytes();
        if (!Crosses(record.event)) continue;
        expected.emplace(record.pcpu.value, UnpackVcpu(record.payload.Word(0)));
      }
    }
    ASSERT_TRUE(found);
    EXPECT_EQ(NamesIn(*found), expected) << "round " << round;
    EXPECT_EQ(found->bytes, bytes) << "round " << round;
  }
}

TEST(NamedVcpus, AreNotKnownWhereMoreIsConcerned) {
  const auto all_named = [](const std::vector<uint32_t>& record) {
    TraceBuilder trace;
    for (uint32_t pcpu = 0; pcpu < 3; ++pcpu) {
      Records records = {Rec(kVmentry, 1, {}), Rec(kRunnableToRunning, 1400, {kD1V0})};
      if (pcpu == 1) records.push_back(record);
      Close(records);
      trace.Window(pcpu, records);
    }
    const auto file = TraceFile::FromBytes(trace.bytes(), "test");
    EXPECT_TRUE(file.ok()) << file.status();
    OrderedStream stream = file->Stream();
    while (!stream.Batch(Tsc{100}).empty()) {
    }
    return stream.NamedUpTo(Tsc{2000}).has_value();
  };
  EXPECT_TRUE(all_named(Rec(kVmentry, 1500, {})));
  EXPECT_FALSE(all_named(Rec(kSchedDomRem, 1500, {7})));
  EXPECT_TRUE(all_named(Rec(kSchedDomRem, 2001, {7}))) << "it is later";
  EXPECT_FALSE(all_named(Rec(kLostRecords, 1500, {7, 1, 1490, 0})));
  EXPECT_FALSE(all_named(Rec(0x0002f000 + 0xabc, 1500, {}))) << "unknown";
  EXPECT_FALSE(all_named(Rec(kRunnableToRunning, 1500, {0xffffffff}))) << "no vCPU";
}

TEST(NamedVcpus, OfAPcpuThatBeginsOrEndsAreNotKnown) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 1, {}), Rec(kVmentry, 8000, {})});
  trace.Window(1, {Rec(kVmentry, 1, {}), Rec(kVmentry, 500, {})});
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  OrderedStream stream = file->Stream();
  EXPECT_FALSE(stream.NamedUpTo(Tsc{100})) << "both begin";
  while (!stream.Batch(Tsc{100}).empty()) {
  }
  EXPECT_TRUE(stream.NamedUpTo(Tsc{499}));
  EXPECT_FALSE(stream.NamedUpTo(Tsc{600})) << "one ends";
}

}  // namespace
}  // namespace xenoscope::trace
