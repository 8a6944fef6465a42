#include "correlate/guest_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using trace::GuestEvent;
using trace::kD1V0;
using trace::kIdle;
using trace::kRunnableToRunning;
using trace::kRunningToRunnable;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint64_t kBegin = 1'000'000;
constexpr uint64_t kPeriod = uint64_t{1} << 24;  // a quarter of kMaxEventAge
constexpr uint64_t kEvents = 40;

// What an event has as its first 8 bytes, by its number and the host's TSC where it was made.
using Payload = uint64_t (*)(uint64_t number, uint64_t host);

// d1v0 runs for 1000 cycles of each period, 400 cycles after its begin it makes an event.
TraceBuilder PvEvents(Payload payload) {
  std::vector<std::vector<uint32_t>> records;
  for (uint64_t i = 0; i < kEvents; ++i) {
    const uint64_t at = kBegin + i * kPeriod;
    const uint64_t value = payload(i, at + 400);
    records.push_back(Rec(kRunnableToRunning, at, {kD1V0}));
    records.push_back(
        Rec(GuestEvent(7), {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}));
    records.push_back(Rec(kRunningToRunnable, at + 1000, {kD1V0}));
    records.push_back(Rec(kRunnableToRunning, at + 1000, {kIdle}));
    records.push_back(Rec(kRunningToRunnable, at + kPeriod, {kIdle}));
  }
  TraceBuilder trace;
  trace.Window(0, records);
  return trace;
}

std::vector<DomainClock> Found(const TraceBuilder& bytes) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  return FindGuestClocks(*file);
}

TEST(GuestClocks, OffsetIsBoundedByTheTimeslicesOfTheGuest) {
  // The guest's TSC is the host's + 12'345. The length of a timeslice leaves 400 cycles above, and
  // 600 below.
  const auto clocks = Found(PvEvents([](uint64_t, uint64_t host) { return host + 12'345; }));
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].domain, DomainId{1});
  EXPECT_THAT(clocks[0].numbers, ElementsAre(7));
  EXPECT_EQ(clocks[0].outside, 0U);
  ASSERT_EQ(clocks[0].epochs.size(), 1U);
  // The events are periodic: shifted by whole periods they would be in timeslices, too. An event is
  // not later than its record, so that only earlier times remain.
  EXPECT_THAT(clocks[0].epochs[0].ranges, ::testing::Contains(OffsetRange{11'745, 12'745}));
  EXPECT_EQ(clocks[0].epochs[0].events + clocks[0].unknown, kEvents);
}

TEST(GuestClocks, VariedTimesLeaveOneNarrowRange) {
  // As the events move in their timeslices, and the timeslices are at irregular times, the other
  // ranges contradict some event.
  std::vector<std::vector<uint32_t>> records;
  uint64_t at = kBegin;
  for (uint64_t i = 0; i < kEvents; ++i) {
    const uint64_t value = at + (i % 2 == 0 ? 10 : 990) - 5'000'000'000;
    records.push_back(Rec(kRunnableToRunning, at, {kD1V0}));
    records.push_back(
        Rec(GuestEvent(7), {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}));
    records.push_back(Rec(kRunningToRunnable, at + 1000, {kD1V0}));
    at += kPeriod + i * i * 5000;
  }
  TraceBuilder trace;
  trace.Window(0, records);
  const auto clocks = Found(trace);
  ASSERT_EQ(clocks.size(), 1U);
  ASSERT_EQ(clocks[0].epochs.size(), 1U);
  EXPECT_THAT(clocks[0].epochs[0].ranges, ElementsAre(OffsetRange{-5'000'000'010, -4'999'999'990}));
}

TEST(GuestClocks, SetClockBeginsAnEpoch) {
  const auto clocks = Found(PvEvents(
      [](uint64_t number, uint64_t host) { return number < 20 ? host : host + 50'000'000'000; }));
  ASSERT_EQ(clocks.size(), 1U);
  ASSERT_EQ(clocks[0].epochs.size(), 2U);
  EXPECT_THAT(clocks[0].epochs[0].ranges, ::testing::Contains(OffsetRange{-600, 400}));
  EXPECT_EQ(clocks[0].epochs[1].begin, Tsc{kBegin + 20 * kPeriod});
  EXPECT_THAT(clocks[0].epochs[1].ranges,
              ::testing::Contains(OffsetRange{49'999'999'400, 50'000'000'400}));
  EXPECT_EQ(clocks[0].outside, 0U);
}

TEST(GuestClocks, EventsThatContradictAreCounted) {
  const auto clocks =
      Found(PvEvents([](uint64_t number, uint64_t host) { return number % 10 == 5 ? 123 : host; }));
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_EQ(clocks[0].epochs.size(), 1U);
  EXPECT_EQ(clocks[0].outside, 4U);
  EXPECT_EQ(clocks[0].epochs[0].events + clocks[0].outside + clocks[0].unknown, kEvents);
}

TEST(GuestClocks, OtherValuesAreNoClock) {
  EXPECT_THAT(Found(PvEvents([](uint64_t, uint64_t) { return uint64_t{0}; })), IsEmpty());
  EXPECT_THAT(Found(PvEvents([](uint64_t number, uint64_t) { return number; })), IsEmpty());
  EXPECT_THAT(Found(PvEvents([](uint64_t, uint64_t host) { return host / 2; })), IsEmpty());
  EXPECT_THAT(
      Found(PvEvents([](uint64_t number, uint64_t) { return number * 0x9e3779b97f4a7c15; })),
      IsEmpty());
}

TEST(GuestClocks, NumbersThatDisagreeForLongAreNoClock) {
  // Of one number, the first events have any value; all later ones, and all of another number, have
  // the TSC.
  std::vector<std::vector<uint32_t>> records;
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t at = kBegin + i * kPeriod;
    const auto event = [&](uint32_t number, uint64_t value) {
      records.push_back(Rec(GuestEvent(number),
                            {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)}));
    };
    records.push_back(Rec(kRunnableToRunning, at, {kD1V0}));
    event(7, i < 4200 ? i * 0x9e3779b97f4a7c15 : at + 400);
    event(8, at + 400);
    records.push_back(Rec(kRunningToRunnable, at + 1000, {kD1V0}));
  }
  TraceBuilder trace;
  trace.Window(0, records);
  const auto clocks = Found(trace);
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_THAT(clocks[0].numbers, ElementsAre(8));
}

TEST(GuestClocks, ShortEventsAreNoClock) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 100, {kD1V0}), Rec(GuestEvent(7), {100}),
                   Rec(GuestEvent(7), {}), Rec(kRunningToRunnable, 1100, {kD1V0})});
  EXPECT_THAT(Found(trace), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::correlate
