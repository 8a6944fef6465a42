// What traces show, as the store keeps it: the figures of slices add up to those of all of them.
#include "store/trace_totals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/find_figure.h"
#include "store/gather_trace.h"
#include "store/join.h"
#include "store/store.h"

namespace xenoscope::store {
namespace {

using analysis::Document;
using analysis::Figure;
using analysis::FindGroup;
using analysis::FindRow;
using analysis::MetricGroup;
using analysis::MetricRow;
using analysis::MetricUnit;
using ::testing::ElementsAre;

constexpr DomainId kWeb{1};
constexpr DomainId kDb{2};

MetricRow Counted(std::string name, uint64_t count, uint64_t cycles) {
  MetricRow row{std::move(name), {}, {}};
  row.Add("count", MetricUnit::kCount, count).Add("cycles", MetricUnit::kCycles, cycles);
  return row;
}

MetricRow Timed(std::string name, uint64_t cycles) {
  MetricRow row{std::move(name), {}, {}};
  row.Add("cycles", MetricUnit::kCycles, cycles);
  return row;
}

MetricGroup& Group(analysis::Section& section, std::string key) {
  return section.groups.emplace_back(MetricGroup{std::move(key), "", {}});
}

// The analyses' document of a trace: d1v0 waited for both vCPUs of d2, and has exits.
Document Traced(uint64_t scale) {
  Document document;
  MetricGroup& vcpus = Group(document.trace, "vcpus");
  for (const char* const name : {"d1v0", "d2v0", "d2v1"}) {
    MetricRow row{name, {}, {}};
    row.Add("running", MetricUnit::kCycles, 100 * scale)
        .Add("runnable", MetricUnit::kCycles, 40 * scale)
        .Add("lost", MetricUnit::kCycles, uint64_t{0});
    vcpus.rows.push_back(row);
  }
  document.domains.push_back({kWeb, {}, {{VcpuId{0}, {}}}});
  document.domains.push_back({kDb, {}, {{VcpuId{0}, {}}, {VcpuId{1}, {}}}});
  analysis::Section& web = document.domains[0].vcpus[0].section;
  // One wait was cut off by the end of the trace, so there are 30 whole cycles of 40.
  Group(web, "runstates").rows = {Counted("runnable", 3 * scale, 30 * scale)};
  MetricRow first = Timed("d2v0", 20 * scale);
  first.parts = {Timed("preempt", 15 * scale), Timed("wake", 5 * scale)};
  MetricRow second = Timed("d2v1", 8 * scale);
  second.parts = {Timed("preempt", 8 * scale)};
  Group(web, "waited_for").rows = {first, second};
  Group(web, "waited_for_edges").rows = {Timed("not known who ran", 12 * scale)};
  MetricRow exit = Counted("VMEXIT_IOIO", 9 * scale, 90 * scale);
  exit.parts = {Counted("io", 8 * scale, 80 * scale), Counted("(no handler)", scale, 10 * scale)};
  exit.parts[0].parts = {Counted("0x84 read", 6 * scale, 70 * scale)};  // the others have no number
  MetricRow vmcall = Counted("VMEXIT_VMMCALL", 5 * scale, 50 * scale);
  vmcall.parts = {Counted("hypercall", 5 * scale, 50 * scale)};
  vmcall.parts[0].parts = {Counted("vcpu_op", 4 * scale, 45 * scale)};  // one has no number
  Group(web, "exits").rows = {exit, vmcall};
  // A PV guest: no times; one of the calls has an operation.
  MetricRow calls{"sched_op", {}, {}};
  calls.Add("count", MetricUnit::kCount, 7 * scale);
  calls.parts = {MetricRow{"yield", {}, {}}.Add("count", MetricUnit::kCount, 6 * scale)};
  Group(document.domains[1].vcpus[0].section, "hypercalls").rows = {calls};
  return document;
}

std::string Label(DomainId domain) { return domain == kWeb ? "web" : "db"; }

class TraceTotalsTest : public ::testing::Test {
 protected:
  Slice Make(const Document& document, const std::string& host, uint64_t clock_hz = 1000) {
    Slice slice;
    slice.head = {.host = host,
                  .begin_ns = 0,
                  .end_ns = 1'000'000'000,
                  .clock_hz = clock_hz,
                  .event = "cycles"};
    GatherTrace(document, document.domains.empty() ? 0 : clock_hz, Label, dictionary_, slice.sums);
    AddFinding("waits", "web", 40, slice.sums);
    AddFinding("losses", "", 7, slice.sums);
    slice.sums.counters.push_back({"lost_records", 11});
    EXPECT_TRUE(CheckSlice(slice, dictionary_).ok());
    return slice;
  }

  Dictionary dictionary_;
};

TEST_F(TraceTotalsTest, HasTheFiguresOfTheTrace) {
  TraceTotals totals(1000);
  totals.Add(Make(Traced(1), "a"), dictionary_);
  EXPECT_EQ(totals.traced(), 1000U);
  const analysis::Section section = totals.Describe({});
  const MetricRow* const web = FindRow(section, "runstates", "web");
  ASSERT_NE(web, nullptr);
  EXPECT_EQ(Figure(*web, "running"), 100U);
  EXPECT_EQ(Figure(*web, "runnable"), 40U);  // all of it
  EXPECT_EQ(Figure(*web, "waits"), 3U);      // that are whole
  EXPECT_EQ(Figure(*FindRow(section, "runstates", "db"), "running"), 200U);
  // Who waited for whom: all of the waiting is there.
  const MetricRow* const waits = FindRow(section, "waited_for", "web");
  EXPECT_EQ(Figure(*waits, "cycles"), 40U);
  ASSERT_EQ(waits->parts.size(), 2U);
  EXPECT_EQ(waits->parts[0].name, "db");
  EXPECT_EQ(Figure(waits->parts[0], "cycles"), 28U);
  EXPECT_EQ(Figure(waits->parts[0].parts[0], "cycles"), 23U);  // preempt, by both vCPUs
  EXPECT_EQ(waits->parts[1].name, "not known who ran");
  // All exits, with what has no number of its own.
  const MetricRow* const exits = FindRow(section, "exits", "web");
  EXPECT_EQ(Figure(*exits, "count"), 14U);
  EXPECT_EQ(Figure(*exits, "cycles"), 140U);
  std::vector<std::string> parts;
  for (const MetricRow& part : exits->parts.at(0).parts) {
    parts.push_back(
        fmt::format("{} {} {}", part.name, Figure(part, "count"), Figure(part, "cycles")));
  }
  EXPECT_THAT(parts, ElementsAre("io: 0x84 read 6 70", "io 2 10", "(no handler) 1 10"));
  // Hypercalls, whether they are VM exits or not.
  EXPECT_EQ(totals.hypercall_slices(), 1U);
  const MetricRow* const calls = FindRow(section, "hypercalls", "web");
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(Figure(*calls, "count"), 5U);
  ASSERT_EQ(calls->parts.size(), 2U);
  EXPECT_EQ(calls->parts[0].name, "vcpu_op");
  EXPECT_EQ(Figure(calls->parts[0], "count"), 4U);
  EXPECT_EQ(Figure(calls->parts[0], "cycles"), 45U);
  EXPECT_EQ(calls->parts[1].name, "(others)");
  const MetricRow* const pv_calls = FindRow(section, "hypercalls", "db");
  ASSERT_NE(pv_calls, nullptr);
  ASSERT_EQ(pv_calls->parts.size(), 1U);
  EXPECT_EQ(Figure(pv_calls->parts[0], "count"), 7U);
  EXPECT_EQ(pv_calls->parts[0].metrics.size(), 1U);  // no time
  ASSERT_EQ(pv_calls->parts[0].parts.size(), 1U);
  EXPECT_EQ(Figure(pv_calls->parts[0].parts[0], "count"), 6U);  // yield
  EXPECT_EQ(Figure(*FindRow(section, "findings", "waits web"), "slices"), 1U);
  EXPECT_EQ(Figure(*FindRow(section, "findings", "losses"), "cycles"), 7U);
  EXPECT_EQ(Figure(*FindRow(section, "losses", "lost_records"), "count"), 11U);
}

// A host may have several findings of a rule about one domain.
TEST_F(TraceTotalsTest, CountsASliceOnceForARuleAndDomain) {
  Slice slice = Make(Traced(1), "a");
  AddFinding("waits", "web", 2, slice.sums);
  AddFinding("waits", "db", 3, slice.sums);
  TraceTotals totals(1000);
  totals.Add(slice, dictionary_);
  const analysis::Section section = totals.Describe({});
  EXPECT_EQ(Figure(*FindRow(section, "findings", "waits web"), "slices"), 1U);
  EXPECT_EQ(Figure(*FindRow(section, "findings", "waits web"), "cycles"), 42U);
  EXPECT_EQ(Figure(*FindRow(section, "findings", "waits db"), "slices"), 1U);
}

TEST_F(TraceTotalsTest, AddsSlicesUpWhetherTheyAreJoinedOrNot) {
  std::vector<Slice> slices;
  for (const uint64_t scale : {1, 2, 5}) slices.push_back(Make(Traced(scale), "a"));
  TraceTotals apart(1000);
  SliceJoiner joiner;
  for (const Slice& slice : slices) {
    apart.Add(slice, dictionary_);
    joiner.Add(slice);
  }
  TraceTotals joined(1000);
  joined.Add(joiner.Take(), dictionary_);
  TraceTotals whole(1000);
  Slice sum = Make(Traced(8), "a");
  sum.sums.trace.erase(sum.sums.trace.end() - 2, sum.sums.trace.end());  // its findings
  whole.Add(sum, dictionary_);
  const analysis::Section expected = apart.Describe({.by_vcpu = true});
  EXPECT_EQ(joined.Describe({.by_vcpu = true}), expected);
  EXPECT_EQ(joined.traced_slices(), 3U);
  for (const char* const group : {"runstates", "waited_for", "exits"}) {
    EXPECT_EQ(*FindGroup(whole.Describe({.by_vcpu = true}), group), *FindGroup(expected, group));
  }
}

// Cycles of hosts with other clocks are converted, and a slice without a trace is none of the time.
TEST_F(TraceTotalsTest, AddsTimesOfHostsWithDifferentClocks) {
  TraceTotals totals(1000);
  totals.Add(Make(Traced(1), "a", 1000), dictionary_);
  totals.Add(Make(Traced(1), "b", 2000), dictionary_);
  Slice untraced = Make(Document(), "c");
  untraced.sums.counters.clear();
  totals.Add(untraced, dictionary_);
  EXPECT_EQ(totals.traced(), 2000U);
  EXPECT_EQ(totals.slices(), 3U);
  EXPECT_EQ(totals.traced_slices(), 2U);
  EXPECT_THAT(totals.hosts(), ElementsAre("a", "b", "c"));
  const analysis::Section section = totals.Describe({.by_vcpu = false, .domains = {"web"}});
  EXPECT_EQ(FindGroup(section, "runstates")->rows.size(), 1U);
  EXPECT_EQ(Figure(*FindRow(section, "runstates", "web"), "running"), 150U);
}

// A guest chooses the numbers of its exits.
TEST_F(TraceTotalsTest, BoundsTheSubreasonsOfAnExit) {
  Document document = Traced(1);
  MetricRow& exit = document.domains[0].vcpus[0].section.groups.back().rows[0];
  exit.parts = {Counted("cpuid", 1000, 500'500)};
  for (uint64_t leaf = 1; leaf <= 1000; ++leaf) {
    exit.parts[0].parts.push_back(Counted(fmt::format("leaf {}", leaf), 1, leaf));
  }
  const Slice slice = Make(document, "a");
  TraceTotals totals(1000);
  totals.Add(slice, dictionary_);
  const analysis::Section section = totals.Describe({});
  const MetricRow& reason = FindRow(section, "exits", "web")->parts.at(0);
  EXPECT_EQ(reason.parts.size(), kMostExitParts + 1);
  EXPECT_EQ(Figure(reason, "count"), 1000U);
  EXPECT_EQ(Figure(reason, "cycles"), 500'500U);
}

}  // namespace
}  // namespace xenoscope::store
