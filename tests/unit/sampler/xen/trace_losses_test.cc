#include "sampler/xen/trace_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "recording/plain_file.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::sampler {
namespace {

using trace::kD1V0;
using trace::kLostRecords;
using trace::kRunnableToRunning;
using trace::Rec;
using trace::TraceBuilder;
using Words = std::vector<uint32_t>;

// The record that Xen writes at `resumed` when it has lost `records` since `first`.
Words LossOf(uint32_t records, uint32_t first, uint32_t resumed) {
  return Rec(kLostRecords, resumed, {records, 7, first, 0});
}

TraceBuilder Window(const Words& record) {
  TraceBuilder trace;
  trace.Window(0, {record});
  return trace;
}

// Returns "9 records in 50 cycles".
std::string LossesOf(Bytes trace, size_t piece) {
  TraceLosses losses;
  for (size_t at = 0; at < trace.size(); at += piece) {
    losses.Take(trace.subspan(at, std::min(piece, trace.size() - at)));
  }
  return std::to_string(losses.records()) + " records in " + std::to_string(losses.cycles()) +
         " cycles";
}

TEST(TraceLosses, AddsUpRecordsAndTime) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 20, {kD1V0}), LossOf(9, 50, 100)});
  trace.Window(0, {Rec(kRunnableToRunning, 120, {kD1V0})});
  trace.Window(0, {LossOf(3, 200, 207)});
  EXPECT_EQ(LossesOf(trace.bytes(), 1000), "12 records in 57 cycles");
  EXPECT_EQ(LossesOf(Window(Rec(kRunnableToRunning, 20, {kD1V0})).bytes(), 1000),
            "0 records in 0 cycles");
}

TEST(TraceLosses, DoesNotDependOnSizesOfPieces) {
  const auto piece = recording::PlainFile::Open(XENOSCOPE_TEST_DATA "/traces/starved.trace");
  ASSERT_TRUE(piece.ok()) << piece.status();
  const auto file = MappedFile::Open(piece->path());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto trace = trace::TraceFile::FromBytes(file->bytes(), "starved");
  ASSERT_TRUE(trace.ok()) << trace.status();
  uint64_t records = 0;
  Cycles cycles = 0;
  trace::OrderedStream stream = trace->Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind != trace::ItemKind::kLost) continue;
    records += item->lost;
    cycles += item->record.tsc - item->first_lost;
  }
  ASSERT_GT(records, 1000U);
  const std::string expected =
      std::to_string(records) + " records in " + std::to_string(cycles) + " cycles";
  for (const size_t size : {1, 7, 40, 4096, 1 << 20}) {
    EXPECT_EQ(LossesOf(file->bytes(), size), expected) << "pieces of " << size;
  }
}

TEST(TraceLosses, IgnoresPayloadThatLooksLikeALoss) {
  const uint32_t lost = trace::FirstWord::Pack(kLostRecords, 4, true).value;
  EXPECT_EQ(LossesOf(Window(Rec(trace::GuestEvent(1), 1, {2, 3, 4, lost, 9, 9, 9})).bytes(), 1000),
            "0 records in 0 cycles");
}

TEST(TraceLosses, SkipsDamage) {
  const Words cut = {trace::FirstWord::Pack(kRunnableToRunning, 2, true).value, 20};
  TraceBuilder trace = Window(cut);  // the record is longer than its window
  trace.Window(0, {LossOf(3, 200, 207)});
  EXPECT_EQ(LossesOf(trace.bytes(), 1000), "3 records in 7 cycles");
  EXPECT_EQ(LossesOf(trace.bytes(), 1), "3 records in 7 cycles");

  EXPECT_EQ(LossesOf(Window(LossOf(3, 207, 200)).bytes(), 1000), "3 records in 0 cycles");

  TraceBuilder garbage;
  garbage.words() = {1, 2, 3};  // no window header: the rest cannot be divided into windows
  garbage.Window(0, {LossOf(3, 200, 207)});
  EXPECT_EQ(LossesOf(garbage.bytes(), 5), "0 records in 0 cycles");
}

}  // namespace
}  // namespace xenoscope::sampler
