#include "report/dump/dump.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "correlate/timeline.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "sampler/mark/xenoscope_mark.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using trace::kD1V0;
using trace::kIdle;
using trace::kRunnableToRunning;
using trace::kRunningToRunnable;
using trace::kVmentry;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vcpu;

constexpr uint32_t kUnknownEvent = 0x22fff;  // of class sched

std::string DumpOf(const TraceBuilder& trace, DumpOptions options) {
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "made by hand");
  EXPECT_TRUE(file.ok()) << file.status();
  options.clock = {2'000'000'000, ClockSource::kGiven};
  options.zero = Tsc{1000};
  std::string text;
  const auto found = Dump(*file, options, [&text](std::string_view piece) {
    text += piece;
    return true;
  });
  EXPECT_TRUE(found.ok()) << found.status();
  return text;
}

TraceBuilder Sample() {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}),
                   Rec(trace::kSvmExit64, 3000, {trace::kVmexitCpuid, 0x401914, 0}),
                   Rec(trace::kHvmCpuid, {0x40000000, 0, 1, 2, 3, 4}),
                   Rec(kVmentry, 2'000'001'001, {}), Rec(kUnknownEvent, 2'000'001'003, {0xabc}),
                   Rec(trace::kSchedBlock, 2'000'001'005, {1, 0})});
  return trace;
}

// A mark as a guest's program writes it.
std::vector<uint32_t> MarkRecord(xenoscope_mark_kind kind, const std::string& text, uint32_t at) {
  xenoscope_mark_argument argument;
  xenoscope_mark_fill(&argument, 0x1122334455667788, kind, 7, text.data(),
                      static_cast<uint32_t>(text.size()), at);
  std::vector<uint32_t> words = {
      trace::FirstWord::Pack(trace::GuestEvent(argument.event), argument.extra_bytes / 4U, false)
          .value};
  words.resize(1 + argument.extra_bytes / 4U);
  std::memcpy(&words[1], argument.extra, argument.extra_bytes);
  return words;
}

TEST(Dump, MarksOfGuestsAreText) {
  TraceBuilder trace;
  const std::string text = "a backup of 20 bytes \x1b";
  trace.Window(
      0, {Rec(kRunnableToRunning, 1000, {kD1V0}), MarkRecord(XENOSCOPE_MARK_BEGIN, text, 0),
          MarkRecord(XENOSCOPE_MARK_BEGIN, text, 16), MarkRecord(XENOSCOPE_MARK_INSTANT, "", 0)});
  EXPECT_EQ(DumpOf(trace, {}),
            "   0.000000000 x d1v0 runstate_change d1v0 runnable->running\n"
            "   0.000000000 x d1v0 guest mark 7 begin \"a backup of 20 b\" tsc 0x1122334455667788\n"
            "   0.000000000 x d1v0 guest mark 7 begin +\"ytes ?\" tsc 0x1122334455667788\n"
            "   0.000000000 x d1v0 guest mark 7 instant \"\" tsc 0x1122334455667788\n");
}

TEST(Dump, TextLooksLikeXenalyze) {
  EXPECT_EQ(DumpOf(Sample(), {}),
            "   0.000000000 x d1v0 runstate_change d1v0 runnable->running\n"
            "]  0.000001000 x d1v0 svm_exit exit_reason VMEXIT_CPUID rip 0x401914\n"
            "]  0.000001000 x d1v0 cpuid leaf 0x40000000 subleaf 0x0 eax 0x1 ebx 0x2 ecx 0x3 edx "
            "0x4\n"
            "]  1.000000000 x d1v0 vmentry cycles 1999998001\n"
            "!  1.000000001 x d1v0 unknown 0x22fff [ abc ]\n"
            "   1.000000002 x d1v0 vcpu_block d1v0\n");
}

TEST(Dump, NamesXenEnumerators) {
  TraceBuilder trace;
  trace.Window(0, {Rec(trace::kCsched2CreditBurn, 1000, {kD1V0, 5, 0x80000000, 2}),
                   Rec(trace::kHvmIntrWindow, {0xf3, 2, 0xffffffff}),
                   Rec(trace::kHvmNpf, {0xfee00000, 0, 1, 0, 4, 5}),
                   Rec(trace::kShadowFixup | trace::kFourLevels, {1, 0, 2, 0, 0x80080004})});
  EXPECT_EQ(DumpOf(trace, {}),
            "   0.000000000 x d?v? csched2:credit_burn d1v0 credit 5 budget none delta 2\n"
            "]  0.000000000 x d?v? intr_window vector 0xf3 source 2 (lapic) pending none\n"
            "]  0.000000000 x d?v? npf gpa 0xfee00000 mfn 0x1 qual 0x4 p2mt 5 (mmio_direct)\n"
            "   0.000000000 x d?v? fixup gl1e 0x1 va 0x2 flags 0x80080004 "
            "(l1_get_ref oos_fixup_add)\n");
  DumpOptions json;
  json.format = DumpFormat::kJson;
  const std::string text = DumpOf(trace, json);
  for (const char* part :
       {R"("budget":-2147483648,"budget_name":"none","delta":2)",
        R"("source":2,"source_name":"lapic","pending":-1,"pending_name":"none")",
        R"("p2mt":5,"p2mt_name":"mmio_direct")",
        R"("flags":"0x80080004","flags_names":["l1_get_ref","oos_fixup_add"])"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  DumpOptions csv;
  csv.format = DumpFormat::kCsv;
  const std::string rows = DumpOf(trace, csv);
  for (const char* part : {"budget=none delta=2", "source=lapic pending=none", "p2mt=mmio_direct",
                           "flags=0x80080004"}) {
    EXPECT_NE(rows.find(part), std::string::npos) << part << " in\n" << rows;
  }
}

TEST(Dump, ReportsRunstateContradictions) {
  // d1v0 runs on pCPU 0 until 1010, and on pCPU 1 from `start` on.
  const auto runs_again_at = [](uint64_t start) {
    TraceBuilder trace;
    trace.Window(0,
                 {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kRunningToRunnable, 1010, {kD1V0})});
    trace.Window(1, {Rec(kRunnableToRunning, start, {kD1V0})});
    return trace;
  };
  const TraceBuilder good = runs_again_at(1020);
  const TraceBuilder bad = runs_again_at(1005);
  const auto findings = [](const TraceBuilder& trace, const DumpOptions& options) {
    const auto file = trace::TraceFile::FromBytes(trace.bytes(), "made by hand");
    return *Dump(*file, options, [](std::string_view) { return true; });
  };
  EXPECT_TRUE(findings(good, {}).contradictions.empty());
  EXPECT_EQ(findings(good, {}).last, Tsc{1020});
  EXPECT_FALSE(findings(bad, {}).contradictions.empty());
  DumpOptions until;
  until.to = Tsc{1005};
  EXPECT_TRUE(findings(bad, until).contradictions.empty());
}

TEST(Dump, RawShowsNumbersAndWords) {
  DumpOptions options;
  options.raw = true;
  options.events = *EventFilter::Parse({"svm_exit"});
  EXPECT_EQ(DumpOf(Sample(), options), "]  0.000001000 x d1v0 svm_exit 0x81103 [ 72 401914 0 ]\n");
}

TEST(Dump, JsonLines) {
  DumpOptions options;
  options.format = DumpFormat::kJson;
  options.events = *EventFilter::Parse({"runstate_change", "svm_exit", "unknown"});
  EXPECT_EQ(DumpOf(Sample(), options),
            R"({"tsc":1000,"seconds":0.000000000,"pcpu":0,"domid":1,"vcpu":0,"kind":"record",)"
            R"("event":"runstate_change","id":"0x21101","offset":12,"fields":{"vcpu":{"domid":1,)"
            R"("vcpu":0},"change":{"old":"runnable","new":"running"}}})"
            "\n"
            R"({"tsc":3000,"seconds":0.000001000,"pcpu":0,"domid":1,"vcpu":0,"kind":"record",)"
            R"("event":"svm_exit","id":"0x81103","offset":28,"fields":{"exit_reason":114,)"
            R"("exit_reason_name":"VMEXIT_CPUID","rip":"0x401914"}})"
            "\n"
            R"({"tsc":2000001003,"seconds":1.000000001,"pcpu":0,"domid":1,"vcpu":0,)"
            R"("kind":"unknown","event":"unknown","id":"0x22fff","offset":92,)"
            R"("fields":{"words":["0xabc"]}})"
            "\n");
}

TEST(Dump, Csv) {
  DumpOptions options;
  options.format = DumpFormat::kCsv;
  options.events = *EventFilter::Parse({"hvm_entryexit"});
  EXPECT_EQ(DumpOf(Sample(), options),
            "tsc,seconds,pcpu,domid,vcpu,kind,event,id,offset,fields\n"
            "3000,0.000001000,0,1,0,record,svm_exit,0x81103,28,exit_reason=VMEXIT_CPUID "
            "rip=0x401914\n"
            "2000001001,1.000000000,0,1,0,record,vmentry,0x81001,80,cycles=1999998001\n");
}

TEST(Dump, FiltersByTimeAndVcpu) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}),
                   Rec(trace::kSchedWake, 2000, {2, 1}),  // d1v0 wakes d2v1
                   Rec(kVmentry, 3000, {})});
  trace.Window(
      5, {Rec(kRunnableToRunning, 2500, {Vcpu(kIdle, 5)}), Rec(trace::kDom0DomAdd, 2600, {2})});
  DumpOptions options;
  options.domains = {DomainId{2}};
  EXPECT_EQ(DumpOf(trace, options),
            "   0.000000500 x. d1v0 vcpu_wake d2v1\n"
            "   0.000000800 |x d32767v5 dom0_dom_add dom 2\n");
  options.vcpus = {VcpuId{0}};
  EXPECT_EQ(DumpOf(trace, options), "");
  options = {};
  options.pcpus = {PcpuId{5}};
  options.from = Tsc{2600};
  EXPECT_EQ(DumpOf(trace, options), "   0.000000800 |x d32767v5 dom0_dom_add dom 2\n");
  options = {};
  options.from = Tsc{2600};
  options.to = Tsc{3000};
  EXPECT_EQ(DumpOf(trace, options), "   0.000000800 |x d32767v5 dom0_dom_add dom 2\n");
  options.from = Tsc{3000};
  options.to = Tsc{3001};
  EXPECT_EQ(DumpOf(trace, options), "]  0.000001000 x- d1v0 vmentry\n");
}

// Returns the cells of the dump's lines as CSV.
std::vector<std::vector<std::string>> RowsOf(const TraceBuilder& trace, DumpOptions options) {
  options.format = DumpFormat::kCsv;
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(DumpOf(trace, options));
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) rows.emplace_back(absl::StrSplit(line, ','));
  return rows;
}

// All lines in the order of time, then of pCPUs, then of the trace of the pCPU: also where one pCPU
// has more records at once than a batch takes of it.
TEST(Dump, OrderIsOfTimeThenOfPcpu) {
  using Line = std::array<uint64_t, 3>;  // time, pCPU, offset
  struct {
    const char* about;
    uint64_t records_of_first;
    uint64_t cycles_between;
    bool has_tsc;
  } const cases[] = {{"few", 10, 100, true},
                     {"one pCPU writes a hundred times as many", 30'000, 10, true},
                     {"many of one time", 30'000, 0, true},
                     {"many without a TSC of their own", 30'000, 0, false},
                     {"times far apart", 3'000, uint64_t{1} << 35, true}};
  for (const auto& it : cases) {
    std::vector<std::vector<uint32_t>> many = {Rec(kRunnableToRunning, 5000, {kD1V0})};
    std::vector<std::vector<uint32_t>> few;
    for (uint64_t i = 0; i < it.records_of_first; ++i) {
      const uint64_t tsc = 5000 + i * it.cycles_between;
      many.push_back(it.has_tsc ? Rec(trace::kSchedWake, tsc, {1, 0})
                                : Rec(trace::kHvmCpuid, {1, 0, 0, 0, 0, 0}));
      if (i % 100 == 0) few.push_back(Rec(trace::kSchedWake, tsc, {2, 0}));
    }
    TraceBuilder trace;
    trace.Window(7, few).Window(3, many).Window(1, few);
    DumpOptions options;
    for (const unsigned threads : {1U, 3U}) {
      options.threads = threads;
      std::vector<Line> lines;
      for (const auto& cells : RowsOf(trace, options)) {
        lines.push_back({std::stoull(cells[0]), std::stoull(cells[2]), std::stoull(cells[8])});
      }
      EXPECT_EQ(lines.size(), many.size() + 2 * few.size()) << it.about;
      EXPECT_TRUE(std::ranges::is_sorted(lines)) << it.about;
    }
  }
}

using CyclesAt = std::map<uint64_t, std::string>;  // by the offset of a VMENTRY; empty: no cycles

CyclesAt CyclesOfDump(const TraceBuilder& trace) {
  DumpOptions options;
  options.events = *EventFilter::Parse({"vmentry"});
  CyclesAt cycles;
  for (const auto& cells : RowsOf(trace, options)) {
    cycles[std::stoull(cells[8])] = cells[9];
  }
  return cycles;
}

// Follows the exits themselves, of which the dump's timeline knows nothing.
struct ExitTaker {
  correlate::TimelineObserver observer;
  correlate::Timeline timeline{observer};
  CyclesAt cycles;
  void Take(const trace::Item& item) {
    const bool is_entry =
        item.kind == trace::ItemKind::kRecord && item.record.event == trace::Event::kHvmVmentry;
    if (is_entry) {
      const correlate::VcpuTrack* vcpu = timeline.Current(item.record.pcpu);
      const bool open = vcpu != nullptr && vcpu->exit_open;
      cycles[item.record.offset] =
          open ? fmt::format("cycles={}", item.record.tsc - vcpu->exit_tsc) : "";
    }
    timeline.Take(item);
  }
};

TEST(Dump, ExitCyclesAreThoseOfTimeline) {
  size_t with_cycles = 0;
  for (uint32_t seed = 1; seed < 200; seed += 2) {  // without idle vCPUs, which have no exits
    const analysis::RandomTrace random(seed);
    ExitTaker expected;
    trace::Stream(random.trace(), expected);
    EXPECT_EQ(CyclesOfDump(random.trace()), expected.cycles) << "seed " << seed;
    for (const auto& [offset, cycles] : expected.cycles) with_cycles += cycles.empty() ? 0 : 1;
  }
  EXPECT_GT(with_cycles, 1000U);
}

TEST(Dump, LossesAreLines) {
  TraceBuilder trace;
  trace.Window(0, {Rec(kRunnableToRunning, 1000, {kD1V0}),
                   Rec(trace::kLostRecords, 5000, {7, 3, 3000, 0}),  // 7 since 3000; d3v0 runs now
                   Rec(kVmentry, 6000, {})});
  EXPECT_EQ(DumpOf(trace, {}),
            "   0.000000000 x d1v0 runstate_change d1v0 runnable->running\n"
            "!  0.000001000 x d?v? loss_begins 7 records\n"
            "!  0.000002000 x d3v0 lost_records 7 since 0.000001000\n"
            "]  0.000002500 x d3v0 vmentry\n");
}

TEST(Dump, OutputDoesNotDependOnThreads) {
  std::vector<std::vector<uint32_t>> records = {Rec(kRunnableToRunning, 1000, {kD1V0})};
  for (uint32_t i = 0; i < 50'000; ++i) {
    records.push_back(Rec(trace::kSchedWake, 1000 + i * uint64_t{1000}, {i % 7, 0}));
  }
  TraceBuilder trace;
  trace.Window(0, records);
  DumpOptions options;
  const std::string one = DumpOf(trace, options);
  options.threads = 4;
  EXPECT_EQ(DumpOf(trace, options), one);
}

TEST(Dump, StopsWhenReaderCloses) {
  const TraceBuilder trace = Sample();
  const auto file = trace::TraceFile::FromBytes(trace.bytes(), "made by hand");
  ASSERT_TRUE(file.ok());
  DumpOptions options;
  options.threads = 2;
  EXPECT_TRUE(Dump(*file, options, [](std::string_view) { return false; }).ok());
  EXPECT_FALSE(Dump(*file, options, [](std::string_view) {
                 return absl::StatusOr<bool>(absl::ResourceExhaustedError("disk full"));
               }).ok());
}

TEST(Dump, ParsesEventFilter) {
  const auto shows = [](const char* word, trace::Event event) {
    const auto filter = EventFilter::Parse({word});
    return filter.ok() && filter->Shows(trace::ItemKind::kRecord, event);
  };
  EXPECT_TRUE(shows("vm*", trace::Event::kHvmVmentry));
  EXPECT_TRUE(shows("hvm", trace::Event::kHvmCpuid));
  EXPECT_TRUE(shows("hvm_handler", trace::Event::kHvmCpuid));
  EXPECT_FALSE(shows("hvm_handler", trace::Event::kHvmVmexit));
  EXPECT_FALSE(shows("lost", trace::Event::kHvmVmexit));
  EXPECT_FALSE(EventFilter::Parse({"no_such_event"}).ok());
}

TEST(LineBuffer, FormatsNumbers) {
  LineBuffer out(10);
  for (const uint64_t value : {0ULL, 9ULL, 10ULL, 99ULL, 100ULL, 12345ULL, ~0ULL}) {
    out.Reserve(100);
    out.PutDecimal(value);
    out.Put(' ');
    out.PutHex(value);
    out.Put(' ');
  }
  out.PutSigned(-5);
  out.Put(' ');
  out.PutNineDigits(1'002'003);
  EXPECT_EQ(out.text(),
            "0 0 9 9 10 a 99 63 100 64 12345 3039 18446744073709551615 ffffffffffffffff -5 "
            "001002003");
}

TEST(NineDigits, FormatsEveryNumber) {
  const auto text = [](uint32_t value) {
    char digits[9];
    NineDigits(value).CopyTo(digits);
    return std::string(digits, 9);
  };
  for (uint32_t value = 0; value < 1'000'000'000; value += 12'347) {
    ASSERT_EQ(text(value), fmt::format("{:09}", value));
  }
  for (const uint32_t power :
       {10U, 100U, 1000U, 10'000U, 1'000'000U, 100'000'000U, 1'000'000'000U}) {
    for (uint32_t times = 1; times <= 1'000'000'000 / power && times < 20'000; ++times) {
      ASSERT_EQ(text(power * times - 1), fmt::format("{:09}", power * times - 1));
    }
  }
}

TEST(FastClock, IsExact) {
  for (const uint64_t hz :
       {999'999'999ULL, 1'000'000'000ULL, 1'000'000'001ULL, 1'999'999'999ULL, 2'000'000'000ULL,
        2'000'000'001ULL, 2'300'000'000ULL, 2'299'997'625ULL, 4'000'000'000ULL, 5'000'000'000ULL,
        7'999'999'999ULL, 8'000'000'000ULL, 8'000'000'001ULL}) {
    const Clock clock{hz, ClockSource::kGiven};
    const FastClock fast(clock);
    for (uint64_t cycles = 0; cycles < hz; cycles += 12'345'677) {
      for (uint64_t near = cycles; near < cycles + 9; ++near) {
        ASSERT_EQ(fast.Nanoseconds(near), clock.Nanoseconds(near)) << hz << ' ' << near;
      }
    }
    EXPECT_EQ(fast.Nanoseconds(hz * 100'000), 100'000'000'000'000U);
  }
}

}  // namespace
}  // namespace xenoscope::report
