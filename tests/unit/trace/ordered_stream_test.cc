#include "trace/ordered_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {
namespace {

using testing::ElementsAre;

constexpr uint32_t kUnknownEvent = 0x82fff;  // of class hvm

std::string Kind(const Item& item) {
  switch (item.kind) {
    case ItemKind::kRecord:
      return std::string(Info(item.record.event).name);
    case ItemKind::kUnknownEvent:
      return fmt::format("unknown({:x})", item.record.id);
    case ItemKind::kMalformed:
      return "malformed";
    case ItemKind::kWrap:
      return "wrap";
    case ItemKind::kLossBegin:
      return "loss";
    case ItemKind::kLost:
      return fmt::format("lost({})", item.record.payload.Word(0));
    case ItemKind::kDamaged:
      return fmt::format("damaged({}+{})", item.damage.offset, item.damage.bytes);
    case ItemKind::kPcpuBegin:
      return "begin";
    case ItemKind::kPcpuEnd:
      return "end";
  }
  return "?";
}

// "tsc pPCPU what who" for each item but the begins and ends.
std::vector<std::string> Stream(Bytes bytes) {
  const auto file = TraceFile::FromBytes(bytes, "test");
  if (!file.ok()) return {std::string(file.status().message())};
  std::vector<std::string> lines;
  OrderedStream stream = file->Stream();
  uint64_t accounted = file->index().header_bytes;
  while (const Item* item = stream.Next()) {
    if (item->kind == ItemKind::kDamaged) accounted += item->damage.bytes;
    if (item->kind <= ItemKind::kWrap || item->kind == ItemKind::kLost) {
      accounted += item->record.SizeBytes();
    }
    if (item->kind == ItemKind::kPcpuBegin || item->kind == ItemKind::kPcpuEnd) continue;
    lines.push_back(fmt::format("{} p{} {} {}", item->record.tsc.value, item->record.pcpu.value,
                                Kind(*item), item->current ? ToString(*item->current) : "d?v?"));
  }
  EXPECT_EQ(accounted, bytes.size()) << "every byte is in one item";
  return lines;
}

TEST(OrderedStream, MergesPcpusByTimeAcrossWindows) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), Rec(kVmentry, 40, {})});
  trace.Window(1, {Rec(kVmentry, 20, {}), Rec(kVmentry, 60, {})});
  trace.Window(0, {Rec(kVmentry, 50, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "20 p1 vmentry d?v?", "40 p0 vmentry d?v?",
                          "50 p0 vmentry d?v?", "60 p1 vmentry d?v?"));
}

TEST(OrderedStream, RecordWithoutTscFollowsPredecessor) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmexit64, 10, {kVmexitCpuid, 0, 0}), Rec(kHvmCpuid, {1, 0, 0, 0, 0, 0})});
  trace.Window(1, {Rec(kVmentry, 10, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmexit d?v?", "10 p0 cpuid d?v?", "10 p1 vmentry d?v?"));
}

TEST(OrderedStream, FirstRecordWithoutTscTakesNextTsc) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kHvmCpuid, {1, 0, 0, 0, 0, 0}), Rec(kVmentry, 10, {})});
  EXPECT_THAT(Stream(trace.bytes()), ElementsAre("10 p0 cpuid d?v?", "10 p0 vmentry d?v?"));
}

TEST(OrderedStream, ReportsCurrentVcpu) {
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kVmentry, 10, {}), Rec(kRunnableToRunning, 20, {kD1V0}), Rec(kVmentry, 30, {}),
                Rec(kRunningToBlocked, 40, {kD1V0}), Rec(kVmentry, 50, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "20 p0 runstate_change d1v0", "30 p0 vmentry d1v0",
                          "40 p0 runstate_change d1v0", "50 p0 vmentry d?v?"));
}

// Notes "tsc pPCPU what" for each record; catches up with p1 before the record of the time 40.
struct CrossingOrder {
  OrderedStream& stream;
  bool catches_up;
  std::vector<std::string> lines;
  void TakeRecord(const Record& record, const AnyTarget& /*target*/) {
    if (catches_up && record.tsc == Tsc{40}) {
      stream.CatchUp(PcpuId{1}, record.pcpu, record.tsc, kAllEvents, *this);
    }
    lines.push_back(
        fmt::format("{} p{} {}", record.tsc.value, record.pcpu.value, Info(record.event).name));
  }
  void TakeNonRecord(const Item& /*item*/) {}
};

std::vector<std::string> InCrossingOrder(bool catches_up) {
  //   p0   20 runs                40 blocks
  //   p1   10 runs    30 entry              50 entry   60 blocks
  const std::vector<uint32_t> entry = Rec(kVmentry, {});
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 20, {kD1V0}), Rec(kRunningToBlocked, 40, {kD1V0}), entry,
                   entry, entry, entry, entry, entry, entry, entry, entry, entry, entry});
  trace.Window(1, {Rec(kRunnableToRunning, 10, {Vcpu(2, 0)}), Rec(kVmentry, 30, {}),
                   Rec(kVmentry, 50, {}), Rec(kRunningToBlocked, 60, {Vcpu(2, 0)}), entry, entry,
                   entry, entry, entry, entry, entry, entry, entry, entry, entry, entry});
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  OrderedStream stream = file->Stream();
  CrossingOrder taker{stream, catches_up, {}};
  stream.ForEach<true, RecordOrder::kCrossing>(OrderedStream::kEnd, kAllEvents, taker);
  std::vector<std::string> timed;
  for (std::string& line : taker.lines) {
    if (!line.ends_with("vmentry") || line.starts_with("30") || line.starts_with("50")) {
      timed.push_back(std::move(line));
    }
  }
  return timed;
}

TEST(OrderedStream, GivesRunBeforeNextRecordThatCrosses) {
  EXPECT_THAT(InCrossingOrder(false),
              ElementsAre("10 p1 runstate_change", "20 p0 runstate_change", "40 p0 runstate_change",
                          "30 p1 vmentry", "50 p1 vmentry", "60 p1 runstate_change"));
}

TEST(OrderedStream, CatchesUpWithPartOfRun) {
  EXPECT_THAT(InCrossingOrder(true),
              ElementsAre("10 p1 runstate_change", "20 p0 runstate_change", "30 p1 vmentry",
                          "40 p0 runstate_change", "50 p1 vmentry", "60 p1 runstate_change"));
}

// Notes the time of each record that crosses, and of each other item.
struct TimesOfWhatIsMerged {
  std::vector<uint64_t> times;
  void TakeRecord(const Record& record, const AnyTarget& /*target*/) {
    if (Crosses(record.event)) times.push_back(record.tsc.value);
  }
  void TakeNonRecord(const Item& item) { times.push_back(item.record.tsc.value); }
};

TEST(OrderedStream, DoesNotBelieveTimeOfWhatIsNoRecordInCrossingOrder) {
  //   p0   10 runs    20 entry    damage that looks like a runstate change at 100
  //   p1   5 runs    15 blocks    50 runs
  const uint32_t impossible = 0x9000U << 16;
  const std::vector<uint32_t> entry = Rec(kVmentry, {});
  TraceBuilder trace;
  std::vector<std::vector<uint32_t>> damaged = {Rec(kRunnableToRunning, 10, {kD1V0}),
                                                Rec(kVmentry, 20, {}),
                                                Rec(kRunnableToRunning, 100, {impossible}),
                                                {0xffffffff, 0xffffffff, 0xffffffff}};
  std::vector<std::vector<uint32_t>> sound = {Rec(kRunnableToRunning, 5, {Vcpu(2, 0)}),
                                              Rec(kRunningToBlocked, 15, {Vcpu(2, 0)}),
                                              Rec(kRunnableToRunning, 50, {Vcpu(2, 0)})};
  for (std::vector<std::vector<uint32_t>>* records : {&damaged, &sound}) {
    records->insert(records->end(), 12, entry);
  }
  trace.Window(0, damaged).Window(1, sound);
  const auto file = TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  OrderedStream stream = file->Stream();
  TimesOfWhatIsMerged taker;
  stream.ForEach<true, RecordOrder::kCrossing>(OrderedStream::kEnd, kAllEvents, taker);
  EXPECT_TRUE(std::ranges::is_sorted(taker.times)) << testing::PrintToString(taker.times);
  EXPECT_THAT(taker.times, testing::Contains(50));
}

TEST(OrderedStream, ReportsLossAtItsBegin) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}),
                   Rec(kLostRecords, 100, {7, 3U | 2U << 16, 50, 0}),  // 7 lost since 50; now d3v2
                   Rec(kVmentry, 110, {})});
  trace.Window(1, {Rec(kVmentry, 70, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 runstate_change d1v0", "50 p0 loss d1v0", "70 p1 vmentry d?v?",
                          "100 p0 lost(7) d3v2", "110 p0 vmentry d3v2"));
}

TEST(OrderedStream, ReportsLossAtTraceStart) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kLostRecords, 100, {7, 3U | 2U << 16, 50, 0}), Rec(kVmentry, 110, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("50 p0 loss d?v?", "100 p0 lost(7) d3v2", "110 p0 vmentry d3v2"));
}

TEST(OrderedStream, ReportsPaddingAndUnknownEvents) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), Rec(kTraceWrapBuffer, {0, 0}), Rec(kUnknownEvent, {}),
                   Rec(kVmentry, 20, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "10 p0 wrap d?v?", "10 p0 unknown(82fff) d?v?",
                          "20 p0 vmentry d?v?"));
}

TEST(OrderedStream, ReportsMalformedRecords) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmexit64, 10, {1}), Rec(kVmentry, 20, {})});
  EXPECT_THAT(Stream(trace.bytes()), ElementsAre("10 p0 malformed d?v?", "20 p0 vmentry d?v?"));
}

TEST(OrderedStream, IgnoresRunstatesOfImpossibleVcpus) {
  for (const uint32_t vcpu : {0x7ff2U << 16, 0x9000U << 16, kD1V0 | 8192U}) {
    TraceBuilder trace;
    trace.Window(0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunnableToRunning, 20, {vcpu}),
                     Rec(kVmentry, 30, {}), Rec(kVmentry, 40, {}), Rec(kVmentry, 50, {})});
    EXPECT_THAT(Stream(trace.bytes()),
                ElementsAre("10 p0 runstate_change d1v0", "20 p0 malformed d1v0",
                            "30 p0 vmentry d1v0", "40 p0 vmentry d1v0", "50 p0 vmentry d1v0"));
  }
}

TEST(OrderedStream, AppliesTscOffsetOfAPcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 100, {}), Rec(kVmentry, 200, {})});
  trace.Window(1, {Rec(kVmentry, 1150, {}), Rec(kLostRecords, 1300, {7, kD1V0, 1250, 0})});
  auto file = TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file->ShiftClock(PcpuId{1}, -1000).ok());
  std::vector<uint64_t> times;
  OrderedStream stream = file->Stream();
  while (const Item* item = stream.Next()) {
    if (item->kind != ItemKind::kPcpuBegin && item->kind != ItemKind::kPcpuEnd) {
      times.push_back(item->record.tsc.value);
    }
  }
  EXPECT_THAT(times, ElementsAre(100, 150, 200, 250, 300));
}

TEST(OrderedStream, ResynchronisesAfterGarbage) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), {0xffffffff, 0x12345678}, Rec(kVmentry, 20, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "10 p0 damaged(24+8) d?v?", "20 p0 vmentry d?v?"));
}

TEST(OrderedStream, ReportsRecordsThatStraddleWindows) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), {FirstWord::Pack(kVmexit64, 3, true).value, 5}});
  trace.Window(0, {Rec(kVmentry, 20, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "10 p0 damaged(24+8) d?v?", "20 p0 vmentry d?v?"));
}

TEST(OrderedStream, RejectsUnconfirmedTscJump) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kVmentry, 10, {}), Rec(kVmentry, 20 | uint64_t{1} << 60, {}), Rec(kVmentry, 30, {})});
  EXPECT_THAT(Stream(trace.bytes()), ElementsAre("10 p0 vmentry d?v?", "10 p0 damaged(24+0) d?v?",
                                                 "10 p0 vmentry d?v?", "30 p0 vmentry d?v?"));
}

TEST(OrderedStream, ClampsTscThatGoesBack) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), Rec(kVmentry, 5, {}), Rec(kVmentry, 30, {})});
  EXPECT_THAT(Stream(trace.bytes()), ElementsAre("10 p0 vmentry d?v?", "10 p0 damaged(24+0) d?v?",
                                                 "10 p0 vmentry d?v?", "30 p0 vmentry d?v?"));
}

TEST(OrderedStream, AcceptsConfirmedTscJump) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), Rec(kVmentry, uint64_t{1} << 45, {}),
                   Rec(kVmentry, (uint64_t{1} << 45) + 5, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "35184372088832 p0 vmentry d?v?",
                          "35184372088837 p0 vmentry d?v?"));
}

TEST(OrderedStream, ConfirmsTscJumpByMajority) {
  TraceBuilder trace;
  trace.Window(
      0, {Rec(kVmentry, 10, {}), Rec(kVmentry, uint64_t{1} << 30, {}), Rec(kVmentry, 20, {}),
          Rec(kVmentry, (uint64_t{1} << 30) + 1, {}), Rec(kVmentry, (uint64_t{1} << 30) + 2, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "1073741824 p0 vmentry d?v?",
                          "1073741824 p0 damaged(36+0) d?v?", "1073741824 p0 vmentry d?v?",
                          "1073741825 p0 vmentry d?v?", "1073741826 p0 vmentry d?v?"));
}

TEST(OrderedStream, RejectsHugeTscJumpAtEnd) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kVmentry, 10, {}), Rec(kVmentry, uint64_t{1} << 45, {})});
  EXPECT_THAT(Stream(trace.bytes()),
              ElementsAre("10 p0 vmentry d?v?", "10 p0 damaged(24+0) d?v?", "10 p0 vmentry d?v?"));
}

TEST(OrderedStream, RejectsOutlyingFirstTsc) {
  for (const uint64_t wrong : {uint64_t{3}, uint64_t{1} << 50, ~uint64_t{0}}) {
    constexpr uint64_t kTime = uint64_t{1} << 47;
    TraceBuilder trace;
    trace.Window(0, {Rec(kVmentry, wrong, {}), Rec(kVmentry, kTime, {}),
                     Rec(kVmentry, kTime + 1, {}), Rec(kVmentry, kTime + 2, {})});
    EXPECT_THAT(Stream(trace.bytes()),
                ElementsAre("140737488355328 p0 damaged(12+0) d?v?",
                            "140737488355328 p0 vmentry d?v?", "140737488355328 p0 vmentry d?v?",
                            "140737488355329 p0 vmentry d?v?", "140737488355330 p0 vmentry d?v?"));
  }
}

TEST(OrderedStream, AccountsForEveryByteOfTruncatedFiles) {
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kVmentry, 10, {}), Rec(kVmexit64, 40, {1, 2, 3}), Rec(kTraceWrapBuffer, {0})});
  trace.Window(1, {Rec(kVmentry, 20, {}), Rec(kLostRecords, 100, {7, 3, 50, 0})});
  for (size_t length = 12; length <= trace.bytes().size(); ++length) {
    Stream(trace.bytes().first(length));  // checks the bytes
  }
}

TEST(OrderedStream, AccountsForEveryByteWithBitFlips) {
  TraceBuilder trace;
  trace.Window(0,
               {Rec(kVmentry, 10, {}), Rec(kVmexit64, 40, {1, 2, 3}), Rec(kTraceWrapBuffer, {0})});
  trace.Window(1, {Rec(kVmentry, 20, {}), Rec(kLostRecords, 100, {7, 3, 50, 0})});
  trace.Window(0, {Rec(kHvmCpuid, {1, 2, 3, 4, 5, 6}), Rec(kVmentry, 200, {})});
  for (uint32_t& word : trace.words()) {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      word ^= 1U << bit;
      Stream(trace.bytes());
      word ^= 1U << bit;
    }
  }
}

}  // namespace
}  // namespace xenoscope::trace
