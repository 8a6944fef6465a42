#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/scatter/scatter_registry.h"
#include "analysis/series/series_pass.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/address_space.h"
#include "analysis/trace_pass.h"
#include "correlate/pcpu_groups.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/analysis/record_ids.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::analysis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::kBlockedToRunnable;
using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToRunnable;
using trace::Rec;
using trace::TraceBuilder;

constexpr uint32_t kD2V0 = 2U << 16;

// More lines than are kept apart, which begin in one order and end in another. ForEachSeriesRow
// fails if the rows do not add up to the totals.
TEST(SeriesTest, LinesBeyondTheLimitAreSummedUp) {
  TraceBuilder trace;
  constexpr uint32_t kVcpus = 6000;
  std::vector<std::vector<uint32_t>> records;
  for (uint32_t i = 0; i < kVcpus; ++i) {
    records.push_back(Rec(kBlockedToRunnable, 10 + i, {(i + 1) << 16}));
  }
  for (uint32_t i = kVcpus; i-- > 0;) {
    const uint64_t begin = 10'000 + 10 * (kVcpus - i);
    records.push_back(Rec(kRunnableToRunning, begin, {(i + 1) << 16}));
    records.push_back(Rec(kRunningToBlocked, begin + 5, {(i + 1) << 16}));
  }
  trace.Window(0, records);
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "test");
  ASSERT_TRUE(file.ok());
  const auto totals = ComputeSeriesTotals(
      *file, {}, {.series = {FindSeries("runstates")}, .length = [](const auto&) { return 1000; }});
  ASSERT_TRUE(totals.ok());
  const absl::Status status =
      ForEachSeriesRow(*file, *totals, [](const IntervalRow&) { return absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
}

std::vector<std::string> RowsOf(const trace::TraceFile& file, const SeriesTotals& totals) {
  std::vector<std::string> rows;
  const absl::Status status = ForEachSeriesRow(file, totals, [&](const IntervalRow& row) {
    std::string text = fmt::format("[{},{})", row.range.begin.value, row.range.end.value);
    for (size_t i = 0; i < row.values[0].size(); ++i) {
      if (row.values[0][i] == 0) continue;
      text += fmt::format(" {}={}", totals.series[0].lines[i].name, row.values[0][i]);
    }
    rows.push_back(text);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

// Returns the rows "[begin,end) LINE=VALUE ..." of a series, without lines whose value is 0. They
// are the same whether the first pass has kept them, or a second one makes them.
std::vector<std::string> Rows(const TraceBuilder& bytes, std::string_view name, Cycles length,
                              const DomainFilter& filter = {}, size_t max_lines = 0) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  const SeriesInfo* info = FindSeries(name);
  EXPECT_NE(info, nullptr) << name;
  TraceHints hints;
  hints.dialect.vendor = trace::Vendor::kSvm;
  hints.dialect.vendor_source = trace::DialectSource::kGiven;
  auto totals = ComputeSeriesTotals(*file, hints,
                                    {.series = {info},
                                     .length = [length](const auto&) { return length; },
                                     .filter = filter,
                                     .max_lines = max_lines});
  EXPECT_TRUE(totals.ok());
  EXPECT_TRUE(totals->are_kept);
  std::vector<std::string> rows = RowsOf(*file, *totals);
  totals->are_kept = false;
  EXPECT_EQ(RowsOf(*file, *totals), rows) << name << ", in intervals of " << length;
  return rows;
}

TEST(IntervalSums, KeepsIntervalsWhileTheyAreFew) {
  IntervalSums sums;
  sums.KeepIntervals(Tsc{100}, 10);
  sums.Close(1, {Tsc{95}, Tsc{115}});  // the part before 100 is in no interval
  sums.Count(1, Tsc{119}, 3);
  sums.Count(2, Tsc{120}, 1);
  ASSERT_TRUE(sums.keeps_intervals());
  EXPECT_THAT(sums.lines()[0].kept, ElementsAre(10, 8));
  EXPECT_THAT(sums.lines()[1].kept, ElementsAre(0, 0, 1));

  IntervalSums later;
  later.KeepIntervals(Tsc{100}, 10);
  later.Close(2, {Tsc{118}, Tsc{135}});
  later.Merge(sums);
  ASSERT_TRUE(later.keeps_intervals());
  EXPECT_THAT(later.lines()[1].kept, ElementsAre(0, 2, 11, 5));

  for (const Tsc at : {Tsc{100} + 10 * IntervalSums::kMaxKept, trace::OrderedStream::kEnd}) {
    IntervalSums many = later;
    many.Count(3, at, 1);
    EXPECT_FALSE(many.keeps_intervals());
    many = later;
    many.Close(3, {Tsc{100}, at});
    EXPECT_FALSE(many.keeps_intervals());
    many.Merge(later);
    EXPECT_FALSE(many.keeps_intervals());
    EXPECT_EQ(many.lines()[0].total, 2 * later.lines()[0].total);
  }
}

TEST(IntervalSums, KeepsIntervalsUpToTheEndOfAllTime) {
  IntervalSums sums;
  sums.KeepIntervals(Tsc{1000}, Cycles{1} << 63);
  sums.Close(1, {Tsc{900}, trace::OrderedStream::kEnd});
  sums.Count(1, trace::OrderedStream::kEnd, 1);
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  EXPECT_THAT(sums.lines()[0].kept,
              ElementsAre(kHalf, trace::OrderedStream::kEnd.value - 1000 - kHalf + 1));
}

// The clock of a pCPU goes back in its last window, so that this one does not show the trace's end.
TEST(SeriesTest, IntervalsAreThoseOfTheWholeTrace) {
  const TraceBuilder bytes =
      TraceBuilder()
          .Window(0, {Rec(kRunnableToRunning, 100, {kD1V0}), Rec(kRunningToBlocked, 1100, {kD1V0})})
          .Window(0, {Rec(kBlockedToRunnable, 600, {kD1V0})});
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  const auto totals = ComputeSeriesTotals(
      *file, {},
      {.series = {FindSeries("domain-run-time")},
       .length = [](const TraceMetadata& metadata) { return metadata.range.Length() / 2; }});
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->length, 500U);
  EXPECT_FALSE(totals->are_kept);
  EXPECT_THAT(RowsOf(*file, *totals),
              ElementsAre("[100,600) d1=500", "[600,1100) d1=500", "[1100,1101)"));
}

//   cycle  10      35      50    55         62
//   p0     d1v0    d2v0    d1v0             the trace ends
//                                sched_op   sched_op
TraceBuilder TwoDomains() {
  return TraceBuilder().Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kRunningToRunnable, 35, {kD1V0}),
          Rec(kRunnableToRunning, 35, {kD2V0}), Rec(kRunningToBlocked, 50, {kD2V0}),
          Rec(kRunnableToRunning, 50, {kD1V0}), Rec(kHypercall, 55, {kSchedOp}),
          Rec(kHypercall, 62, {kSchedOp})});
}

TEST(SeriesTest, RunTimeIsDividedAtTheEndsOfIntervals) {
  EXPECT_THAT(Rows(TwoDomains(), "domain-run-time", 20),
              ElementsAre("[10,30) d1=20", "[30,50) d1=5 d2=15", "[50,63) d1=12"));
}

TEST(SeriesTest, IntervalsAreHalfOpen) {
  // The call at 62 is in the interval that begins there.
  EXPECT_THAT(Rows(TwoDomains(), "hypercalls", 26),
              ElementsAre("[10,36)", "[36,62) sched_op=1", "[62,63) sched_op=1"));
}

TEST(SeriesTest, OneLongIntervalHoldsTheTotals) {
  EXPECT_THAT(Rows(TwoDomains(), "domain-run-time", 1'000'000), ElementsAre("[10,63) d1=37 d2=15"));
  EXPECT_THAT(Rows(TwoDomains(), "pcpu-utilisation", 1'000'000), ElementsAre("[10,63) p0=52"));
}

TEST(SeriesTest, FiltersDomains) {
  EXPECT_THAT(Rows(TwoDomains(), "domain-run-time", 1'000'000, {{DomainId{2}}}),
              ElementsAre("[10,63) d2=15"));
}

TEST(SeriesTest, LinesBeyondMaxLinesAreFoldedIntoOther) {
  EXPECT_THAT(Rows(TwoDomains(), "runstates", 1'000'000, {}, 1),
              ElementsAre("[10,63) d1v0 running=37 (other)=42"));
}

TEST(SeriesTest, EveryVcpuHasItsRunstates) {
  EXPECT_THAT(Rows(TwoDomains(), "runstates", 30),
              ElementsAre("[10,40) d1v0 running=25 d1v0 runnable=5 d2v0 running=5",
                          "[40,63) d1v0 running=12 d1v0 runnable=10 d2v0 running=10 "
                          "d2v0 blocked=12"));
}

//   cycle  10    12     20    25       50     55    60     70    75     90    92       95
//   d1v0   runs  enter  exit  blocked  woken  runs  enter  exit  enter  exit  blocked  grant map
//                       HLT                         0xf3   IOIO         HLT            for d2
TraceBuilder HaltingGuest() {
  return TraceBuilder().Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
          Rec(kVmexit, 20, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 25, {kD1V0}),
          Rec(kBlockedToRunnable, 50, {kD1V0}), Rec(kRunnableToRunning, 55, {kD1V0}),
          Rec(kInjVirq, {0xf3, 0}), Rec(kVmentry, 60, {}),
          Rec(kVmexit, 70, {kVmexitIoio, 0x2000, 0}), Rec(kIoportRead, {0x80, 0}),
          Rec(kVmentry, 75, {}), Rec(kVmexit, 90, {kVmexitHlt, 0x3000, 0}),
          Rec(kRunningToBlocked, 92, {kD1V0}), Rec(kGrantMap, 95, {2})});
}

TEST(SeriesTest, TimeOfExitsIncludesTheHalt) {
  EXPECT_THAT(Rows(HaltingGuest(), "exit-time", 30),
              ElementsAre("[10,40) VMEXIT_HLT=20", "[40,70) VMEXIT_HLT=10",
                          "[70,96) VMEXIT_HLT=5 VMEXIT_IOIO=5"));
  EXPECT_THAT(Rows(HaltingGuest(), "exits", 30),
              ElementsAre("[10,40)", "[40,70) VMEXIT_HLT=1", "[70,96) VMEXIT_IOIO=1"));
}

TEST(SeriesTest, ShortSummaryHasTheClassesOfExits) {
  EXPECT_THAT(Rows(HaltingGuest(), "domain-short-summary", 1000),
              ElementsAre("[10,96) d1 running=52 d1 hlt=35 d1 other=5"));
}

TEST(SeriesTest, InterruptsAndGrantsAreCounted) {
  EXPECT_THAT(Rows(HaltingGuest(), "guest-interrupts", 1000), ElementsAre("[10,96) d1 0xf3=1"));
  EXPECT_THAT(Rows(HaltingGuest(), "grant-maps", 1000), ElementsAre("[10,96) d2 map=1"));
}

TEST(SeriesTest, AddressSpacesBeginAtFirstCr3Write) {
  //   cycle  10    12     20        22     40        45     60         70    80
  //   d1v0   runs  enter  cr3=5000  enter  cr3=7001  enter  preempted  runs  enter
  const TraceBuilder bytes = TraceBuilder().Window(
      0, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kVmentry, 12, {}),
          Rec(kVmexit, 20, {kVmexitCr3Write, 0, 0}), Rec(kCrWrite, {kCr3, 0x5000, 0}),
          Rec(kVmentry, 22, {}), Rec(kVmexit, 40, {kVmexitCr3Write, 0, 0}),
          Rec(kCrWrite, {kCr3, 0x7001, 0}), Rec(kVmentry, 45, {}),
          Rec(kRunningToRunnable, 60, {kD1V0}), Rec(kRunnableToRunning, 70, {kD1V0}),
          Rec(kVmentry, 80, {})});
  EXPECT_THAT(Rows(bytes, "cr3-time", 40),
              ElementsAre("[10,50) d1 cr3 0x7=10 d1 cr3 0x5=20", "[50,81) d1 cr3 0x7=20"));
  EXPECT_THAT(Rows(bytes, "cr3-short-summary", 1000),
              ElementsAre("[10,81) d1 cr3 0x7 running=30 d1 cr3 0x5 running=20 "
                          "d1 cr3 0x7 cr3=5 d1 cr3 0x5 cr3=2"));
}

TEST(SeriesTest, LostRecordsCountAtEndOfLoss) {
  //   cycle  10    30               50        60
  //   p1     d1v0  7 records lost   the mark  sched_op
  const TraceBuilder bytes = TraceBuilder().Window(
      1, {Rec(kRunnableToRunning, 10, {kD1V0}), Rec(kLostRecords, 50, {7, 1, 30, 0}),
          Rec(kHypercall, 60, {kSchedOp})});
  EXPECT_THAT(Rows(bytes, "lost-records", 25), ElementsAre("[10,35)", "[35,60) p1=7", "[60,61)"));
}

TEST(SeriesTest, EverySeriesSumsToItsTotal) {
  // ForEachSeriesRow compares the rows' sums with totals of the whole trace.
  for (const SeriesInfo& info : kAllSeries) {
    for (const Cycles length : {1, 3, 7, 1000}) {
      Rows(TwoDomains(), info.name, length);
      Rows(HaltingGuest(), info.name, length);
    }
  }
}

// Short intervals are taken in another order than long ones, and these in another order than that
// of time. The traces contradict themselves.
TEST(SeriesTest, EverySeriesSumsToItsTotalOnManyPcpus) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTrace random(seed, 8);
    for (const SeriesInfo& info : kAllSeries) {
      for (const Cycles length : {Cycles{1000}, correlate::kLeastGrouped}) {
        Rows(random.trace(), info.name, length);
      }
    }
  }
}

TEST(SeriesTest, RefusesTooManyIntervals) {
  TraceBuilder bytes = TraceBuilder().Window(
      0, {Rec(kHypercall, 1, {kSchedOp}), Rec(kHypercall, kMaxIntervals + 10, {kSchedOp})});
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_EQ(PassOverIntervals(*file, {}, 1,
                              [](TscRange, const correlate::Timeline&) { return absl::OkStatus(); })
                .code(),
            absl::StatusCode::kInvalidArgument);
}

class Points : public PointSink {
 public:
  explicit Points(const Scatter& scatter) : scatter_(scatter) {}
  void OnPoint(uint64_t line, Tsc x, uint64_t y) override {
    points.push_back(
        fmt::format("{} {} {}", scatter_.LineName(line), x.value, static_cast<int64_t>(y)));
  }
  std::vector<std::string> points;

 private:
  const Scatter& scatter_;
};

std::vector<std::string> PointsOf(const TraceBuilder& bytes, std::string_view name,
                                  const ScatterOptions& options = {}) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  const auto made = FindScatter(name)->make(options);
  Points points(*made);
  made->SetSink(points);
  EXPECT_TRUE(PassOverTrace(*file, {}, {made.get()}).ok());
  return points.points;
}

TEST(ScatterTest, SchedulingGivesPcpusAndRunstates) {
  EXPECT_THAT(PointsOf(TwoDomains(), "pcpu"), ElementsAre("d1v0 10 0", "d2v0 35 0", "d1v0 50 0"));
  EXPECT_THAT(PointsOf(TwoDomains(), "runstate"),
              ElementsAre("d1v0 10 3", "d1v0 35 2", "d2v0 35 3", "d2v0 50 0", "d1v0 50 3",
                          "d1v0 62 -1"));  // its pCPU's trace ends
  EXPECT_THAT(PointsOf(TwoDomains(), "runstate-time"),
              ElementsAre("d1v0 running 35 25", "d2v0 running 50 15", "d1v0 runnable 50 15",
                          "d1v0 running 62 12"));
}

TEST(ScatterTest, ExitsGiveAddressesAndTimes) {
  EXPECT_THAT(PointsOf(HaltingGuest(), "vmexit-eip"),
              ElementsAre("d1v0 20 4096", "d1v0 70 8192", "d1v0 90 12288"));
  EXPECT_THAT(PointsOf(HaltingGuest(), "io"), ElementsAre("0x80 read 70 5"));
  EXPECT_THAT(PointsOf(HaltingGuest(), "io", {{}, 0x81}), IsEmpty());
}

TEST(ScatterTest, WakeToHaltFromTheEntryToTheBlock) {
  EXPECT_THAT(PointsOf(HaltingGuest(), "wake-to-halt"), ElementsAre("d1v0 0xf3 92 32"));
}

}  // namespace
}  // namespace xenoscope::analysis
