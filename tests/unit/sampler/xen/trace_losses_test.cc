// The losses of a trace, counted while pieces of it pass.
#include "sampler/xen/trace_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "recording/plain_file.h"
#include "trace/trace_file.h"

namespace xenoscope::sampler {
namespace {

using Words = std::vector<uint32_t>;

constexpr uint32_t kRunstate = 0xA002F000;  // any record with a TSC and two words
constexpr uint32_t kLost = 0xC001F001;

void Append(Words& to, const Words& words) { to.insert(to.end(), words.begin(), words.end()); }

// Returns a window of pCPU 0.
Words Window(const Words& records) {
  Words window = {0x2001f003, 0, static_cast<uint32_t>(4 * records.size())};
  Append(window, records);
  return window;
}

Words LossOf(uint32_t records, uint32_t first, uint32_t resumed) {
  return {kLost, resumed, 0, records, 7, first, 0};
}

Bytes BytesOf(const Words& words) { return std::as_bytes(std::span(words)); }

// Returns "9 records in 50 cycles".
std::string LossesOf(Bytes trace, size_t piece) {
  TraceLosses losses;
  for (size_t at = 0; at < trace.size(); at += piece) {
    losses.Take(trace.subspan(at, std::min(piece, trace.size() - at)));
  }
  return std::to_string(losses.records()) + " records in " + std::to_string(losses.cycles()) +
         " cycles";
}

TEST(TraceLosses, RecordsAndTimeAreAddedUp) {
  Words records = {kRunstate, 20, 0, 1, 2};
  Append(records, LossOf(9, 50, 100));
  Words trace = Window(records);
  Append(trace, Window({kRunstate, 120, 0, 1, 2}));
  Append(trace, Window(LossOf(3, 200, 207)));
  EXPECT_EQ(LossesOf(BytesOf(trace), 1000), "12 records in 57 cycles");
  EXPECT_EQ(LossesOf(BytesOf(Window({kRunstate, 20, 0, 1, 2})), 1000), "0 records in 0 cycles");
}

TEST(TraceLosses, HoweverTheTraceIsDivided) {
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

TEST(TraceLosses, WhatARecordHoldsIsNoRecord) {
  Words inside = {0xF0800001, 1, 2, 3, 4, 5};  // a guest's, of seven words, which ...
  Append(inside, {kLost, 9, 9, 9});            // ... end with what looks like a loss
  EXPECT_EQ(LossesOf(BytesOf(Window(inside)), 1000), "0 records in 0 cycles");
}

TEST(TraceLosses, DamageIsPassedOver) {
  Words cut = {kRunstate, 20};  // reaches past its window
  Words trace = Window(cut);
  Append(trace, Window(LossOf(3, 200, 207)));
  EXPECT_EQ(LossesOf(BytesOf(trace), 1000), "3 records in 7 cycles");
  EXPECT_EQ(LossesOf(BytesOf(trace), 1), "3 records in 7 cycles");

  EXPECT_EQ(LossesOf(BytesOf(Window(LossOf(3, 207, 200))), 1000), "3 records in 0 cycles");

  Words garbage = {1, 2, 3};  // no window: what follows cannot be divided
  Append(garbage, Window(LossOf(3, 200, 207)));
  EXPECT_EQ(LossesOf(BytesOf(garbage), 5), "0 records in 0 cycles");
}

}  // namespace
}  // namespace xenoscope::sampler
