#include "report/profile/profile_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/unit/trace/exit_reasons.h"

namespace xenoscope::report {
namespace {

using correlate::Context;
using correlate::ContextKind;
using correlate::Dimension;
using correlate::Placement;
using correlate::ProfileRow;
using correlate::UnplacedReason;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ProfileRow MakeRow(uint16_t domain, Mode mode, std::string function, double samples, double share) {
  ProfileRow row;
  row.domain = {domain};
  row.mode = mode;
  row.function = std::move(function);
  row.samples = samples;
  row.share = share;
  row.interval = {share / 2, share * 2};
  row.cycles = share * 1e9;
  return row;
}

ProfileReport Web() {
  ProfileReport report;
  report.by = {Dimension::kDomain, Dimension::kMode, Dimension::kFunction};
  report.result.rows = {MakeRow(1, Mode::kUser, "hash", 60, 0.6),
                        MakeRow(1, Mode::kXen, "svm_vmexit_handler", 20, 0.2),
                        MakeRow(0, Mode::kKernel, "memcpy", 19.5, 0.2)};
  report.result.domains = {MakeRow(0, Mode::kUser, "", 19.5, 0.2),
                           MakeRow(1, Mode::kUser, "", 80, 0.8)};
  report.result.samples = 99.5;
  report.result.cycles = 1e9;
  report.counts.samples = 102;
  report.counts.placed.at(static_cast<size_t>(Placement::kNmiExit)) = 40;
  report.counts.placed.at(static_cast<size_t>(Placement::kBracketed)) = 60;
  report.counts.unplaced.at(static_cast<size_t>(UnplacedReason::kTraceLost)) = 2;
  report.event = "cycles";
  report.sampled = {Tsc{0}, Tsc{2'000'000'000}};
  report.clock = {1'000'000'000, ClockSource::kRecorded};
  report.vendor = trace::Vendor::kSvm;
  report.domain_name = [](DomainId domain) { return domain.value == 1 ? "web" : ""; };
  return report;
}

TEST(ProfileText, GroupsFunctionsUnderTheirDomain) {
  EXPECT_EQ(ProfileText(Web(), {}, {}),
            "102 samples of cycles in 2.0 s at 1.000 GHz (recorded)\n"
            "low to high, or ±: 95 % interval of the share\n"
            "\n"
            "samples    share     low     high   cycles  mode      function\n"
            "\n"
            "   80.0   80.00%  40.00%  160.00%  800.0 M  d1 web\n"
            "   60.0   60.00%  30.00%  120.00%  600.0 M    user    hash\n"
            "   20.0   20.00%  10.00%   40.00%  200.0 M    xen     svm_vmexit_handler\n"
            "\n"
            "   19.5   20.00%  10.00%   40.00%  200.0 M  d0\n"
            "   19.5   20.00%  10.00%   40.00%  200.0 M    kernel  memcpy\n"
            "\n"
            "   99.5  100.00%                    1.00 G  total\n"
            "\n"
            "100 of 102 samples attributed: 40 timed by their NMI exit, 60 estimated within a "
            "drain interval\n"
            "2 samples where the trace lost records\n");
}

// Rows of exits: 400 for CPUID, of which 300 by vCPU 0.
ProfileReport Exits() {
  ProfileReport report = Web();
  report.by = {Dimension::kExit};
  constexpr correlate::Context kCpuid{correlate::ContextKind::kExit, false, 0x72};
  ProfileRow cpuid = MakeRow(1, Mode::kUser, "", 20, 0.2);
  cpuid.exit = kCpuid;
  ProfileRow guest = MakeRow(1, Mode::kUser, "", 79.5, 0.8);
  guest.exit = {correlate::ContextKind::kGuest};
  report.result.rows = {cpuid, guest};
  report.exit_counts = {
      {{DomainId{1}, VcpuId{0}}, kCpuid, 300},
      {{DomainId{1}, VcpuId{1}}, kCpuid, 100},
      {{DomainId{1}, VcpuId{1}}, {correlate::ContextKind::kExit, false, 0x7b}, 7}};
  return report;
}

TEST(ProfileText, ShowsWhatAnExitCosts) {
  const std::string text = ProfileText(Exits(), {}, {});
  EXPECT_THAT(text, HasSubstr("exits  per exit  exit\n"));
  EXPECT_THAT(text, HasSubstr("  400   500.0 k  VMEXIT_CPUID\n"));
  ProfileReport traced = Exits();
  traced.result.rows[0].interval = {0.2, 0.2};
  EXPECT_THAT(ProfileCsv(traced, {}), HasSubstr(",400,500000,,\r\n"));
  ProfileReport of_vcpu = Exits();
  of_vcpu.by = {Dimension::kExit, Dimension::kVcpu};
  of_vcpu.result.rows[0].vcpu = VcpuId{1};
  EXPECT_THAT(ProfileCsv(of_vcpu, {}), HasSubstr(",100,2000000,1000000,4000000\r\n"));
}

TEST(ProfileText, ShowsHowOftenAnEventHappenedInAnExit) {
  ProfileReport report = Exits();
  report.is_time = false;
  report.period = 1e6;
  EXPECT_THAT(ProfileText(report, {}, {}),
              HasSubstr("400    50.0 k  25.0 k  100.0 k  VMEXIT_CPUID\n"));
  EXPECT_THAT(ProfileCsv(report, {}), HasSubstr(",400,50000,25000,100000\r\n"));
  report.period = 0;  // there are several
  EXPECT_THAT(ProfileCsv(report, {}), Not(HasSubstr("per_exit")));
}

TEST(ProfileText, CountsExitsOnlyInRowsOfExits) {
  ProfileReport report = Exits();
  report.by = {Dimension::kExit, Dimension::kFunction};
  EXPECT_THAT(ProfileCsv(report, {}), Not(HasSubstr("per_exit")));
}

// The same as a tree: each mode of a domain has a subtotal.
ProfileReport WebTree() {
  ProfileReport report = Web();
  report.result.rows.push_back(MakeRow(1, Mode::kUser, "parse", 10, 0.1));
  report.result.subtotals = {{MakeRow(1, Mode::kUser, "", 70, 0.7),
                              MakeRow(1, Mode::kXen, "", 20, 0.2),
                              MakeRow(0, Mode::kKernel, "", 19.5, 0.2)}};
  const std::vector<uint32_t> part_of = {0, 1, 2, 0};
  for (size_t i = 0; i < part_of.size(); ++i) report.result.rows[i].part_of = part_of[i];
  return report;
}

TEST(ProfileText, ShowsTreeWithSubtotals) {
  EXPECT_THAT(ProfileText(WebTree(), {}, {}),
              HasSubstr("samples    share     low     high   cycles  domain / mode / function\n"
                        "\n"
                        "   80.0   80.00%  40.00%  160.00%  800.0 M  d1 web\n"
                        "   70.0   70.00%  35.00%  140.00%  700.0 M    user\n"
                        "   60.0   60.00%  30.00%  120.00%  600.0 M      hash\n"
                        "   10.0   10.00%   5.00%   20.00%  100.0 M      parse\n"
                        "   20.0   20.00%  10.00%   40.00%  200.0 M    xen\n"
                        "   20.0   20.00%  10.00%   40.00%  200.0 M      svm_vmexit_handler\n"
                        "\n"
                        "   19.5   20.00%"));
}

// A tree has the totals of its levels, and says of those that are exact that they are.
TEST(ProfileText, ShowsTotalsInTree) {
  ProfileReport report = WebTree();
  report.traced = true;
  report.result.has_totals = true;
  report.result.domains[0].interval = {0.2, 0.2};
  report.result.subtotals[0][0].total = correlate::RowTotal{75, 0.75, {0.7, 0.8}, 750e6};
  for (correlate::ProfileRow& row : report.result.rows) {
    row.total = correlate::RowTotal{row.samples, row.share, row.interval, row.cycles};
  }
  const std::string text = ProfileText(report, {.domains = {}, .sort = "total_share"}, {});
  EXPECT_THAT(
      text, HasSubstr("20.00%  traced              19.5   20.00%  traced           200.0 M  d0\n"));
  EXPECT_THAT(
      text,
      HasSubstr("75.00%  70.00%   80.00%     70.0   70.00%  35.00%  140.00%  700.0 M    user\n"));
}

TEST(ProfileText, SaysWhatChosenRowsAddUpTo) {
  ProfileReport report = Web();
  report.chosen = RowTotals{30, 0.3, 300e6};
  EXPECT_THAT(ProfileText(report, {}, {}),
              testing::ContainsRegex(" 30.0 +30.00% +300.0 M +chosen\n.* total\n"));
}

TEST(ProfileText, LimitsRowsOfTree) {
  // The subtotal of xen is as large as the row that is shown; that of parse's mode has such a row.
  ProfileReport report = WebTree();
  report.result.rows[1].share = 0.05;
  std::string text = ProfileText(report, {.domains = {DomainId{1}}, .limit = 2}, {});
  EXPECT_THAT(text, HasSubstr("hash\n"));
  EXPECT_THAT(text, HasSubstr("parse\n"));
  EXPECT_THAT(text, HasSubstr("    xen\n"));
  EXPECT_THAT(text, Not(HasSubstr("svm_vmexit_handler")));
  EXPECT_THAT(text, HasSubstr("(1 more)\n"));
  // Functions ascend by name; what they are parts of descends by share.
  text = ProfileText(WebTree(), {.domains = {}, .sort = "function"}, {});
  EXPECT_LT(text.find("hash\n"), text.find("parse\n"));
  text = ProfileText(WebTree(), {.domains = {}, .threshold = 0.15}, {});
  EXPECT_THAT(text, Not(HasSubstr("parse\n")));
}

TEST(ProfileText, KeepsTheWidthOfATerminal) {
  ProfileReport report = WebTree();
  report.result.rows[0].function = std::string(60, 'f');
  report.result.has_totals = true;
  for (const size_t width : {200, 100, 80, 60}) {
    const std::string text = ProfileText(report, {}, {.width = width});
    // From the titles to the total.
    const size_t begin = text.find("\n\n") + 2;
    const std::string table = text.substr(begin, text.rfind("total\n") - begin);
    const std::vector<std::string> lines = absl::StrSplit(table, '\n');
    for (const std::string& line : lines) {
      EXPECT_LE(DisplayWidth(line), width) << table;
    }
    EXPECT_EQ(text.find("cycles  domain /") == std::string::npos, width <= 100) << text;
    EXPECT_EQ(text.find("±  domain /") == std::string::npos, width > 80) << text;
  }
}

// The same with instructions beside cycles: of memcpy nothing is known but how few there are.
ProfileReport WebWithInstructions() {
  ProfileReport report = Web();
  report.event = "{cycles,instructions}";
  report.comparison.events = {{{0}, "cycles", "cycles", "cycles", 1000},
                              {{1}, "instructions", "instructions", "instructions", 2000}};
  report.comparison.ratios = {{"ipc", "IPC", "instructions per cycle", false, {1, 0, 2}}};
  report.result.event_samples = {99.5, 40};
  report.result.ratios = {{0.804, 0.8, 0.81}};
  const auto set = [](ProfileRow& row, double instructions, correlate::RatioEstimate ratio) {
    row.event_samples = {row.samples, instructions};
    row.ratios = {ratio};
  };
  set(report.result.rows[0], 30, {1.0, 0.75, 1.25});
  set(report.result.rows[1], 10, {1.0, 0.5, 12.345});
  set(report.result.rows[2], 0, {{}, 0, {}});
  set(report.result.domains[0], 0, {0.0, 0, 0.25});
  set(report.result.domains[1], 40, {1.0, 0.8, 1.2});
  return report;
}

TEST(ProfileText, ShowsEventsSideBySide) {
  const std::string text = ProfileText(WebWithInstructions(), {}, {});
  EXPECT_EQ(
      text.substr(0, text.find("100 of 102")),
      "102 samples of {cycles,instructions} in 2.0 s at 1.000 GHz (recorded)\n"
      "low to high, or ±: 95 % interval of the share, and of the ratio before them\n"
      "IPC: instructions per cycle\n"
      "\n"
      "samples    share     low     high   cycles  instructions    IPC    low   high  mode    "
      "  function\n"
      "\n"
      "   80.0   80.00%  40.00%  160.00%  800.0 M       100.00%  1.000  0.800  1.200  d1 web\n"
      "   60.0   60.00%  30.00%  120.00%  600.0 M        75.00%  1.000  0.750  1.250    user    "
      "hash\n"
      "   20.0   20.00%  10.00%   40.00%  200.0 M        25.00%  1.000  0.500  12.35    xen     "
      "svm_vmexit_handler\n"
      "\n"
      "   19.5   20.00%  10.00%   40.00%  200.0 M         0.00%  0.000  0.000  0.250  d0\n"
      "   19.5   20.00%  10.00%   40.00%  200.0 M         0.00%                         kernel  "
      "memcpy\n"
      "\n"
      "   99.5  100.00%                    1.00 G       100.00%  0.804  0.800  0.810  total\n"
      "\n");
}

TEST(ProfileCsv, HasRatiosWithTheirIntervals) {
  ProfileSelection by_ratio;
  by_ratio.sort = "ipc_high";
  EXPECT_EQ(ProfileCsv(WebWithInstructions(), by_ratio),
            "domain,mode,function,samples,share,low,high,cycles,instructions_share,ipc,ipc_low,"
            "ipc_high,domid\r\n"
            "web,xen,svm_vmexit_handler,20,0.2,0.1,0.4,200000000,0.25,1,0.5,12.345,1\r\n"
            "web,user,hash,60,0.6,0.3,1.2,600000000,0.75,1,0.75,1.25,1\r\n"
            "d0,kernel,memcpy,19.5,0.2,0.1,0.4,200000000,0,,,,0\r\n");
}

TEST(ProfileJson, DescribesEventsAndRatios) {
  const nlohmann::ordered_json json = ProfileJson(WebWithInstructions(), {});
  EXPECT_EQ(json["comparison"]["events"][1].dump(),
            R"({"event":"instructions","key":"instructions","period":2000,"samples":40.0})");
  EXPECT_EQ(json["comparison"]["ratios"][0].dump(),
            R"({"key":"ipc","about":"instructions per cycle","numerator":"instructions",)"
            R"("denominator":"cycles","value":0.804,"low":0.8,"high":0.81})");
  EXPECT_EQ(json["rows"][0]["ipc_low"], 0.75);
  EXPECT_TRUE(json["rows"][2]["ipc"].is_null());
  EXPECT_TRUE(ProfileJson(Web(), {})["comparison"]["events"].empty());
}

TEST(ProfileView, HasColumnsOfItsEventsAlone) {
  EXPECT_TRUE(HasColumn(WebWithInstructions(), "ipc"));
  EXPECT_FALSE(HasColumn(Web(), "ipc"));
  EXPECT_TRUE(HasColumn(Web(), "mode"));
  EXPECT_FALSE(HasColumn(Web(), "exit"));
  EXPECT_TRUE(IsSortKey({Dimension::kMode}, "cache_misses_pti"));
}

TEST(ProfileText, ReportsAttributionWithoutTrace) {
  ProfileReport report = Web();
  report.traced = false;
  report.counts = {};
  report.counts.samples = 102;
  report.counts.placed.at(static_cast<size_t>(Placement::kUntraced)) = 102;
  EXPECT_THAT(ProfileText(report, {}, {}),
              HasSubstr("102 of 102 samples attributed: 102 by domain and mode alone, without a "
                        "trace\n"));
}

TEST(ProfileText, ShowsOnlyWhatIsSelected) {
  ProfileSelection selection;
  selection.domains = {DomainId{1}};
  selection.limit = 1;
  const std::string text = ProfileText(Web(), selection, {});
  EXPECT_THAT(text, HasSubstr("hash"));
  EXPECT_THAT(text, HasSubstr("(1 more)"));
  EXPECT_THAT(text, Not(HasSubstr("memcpy")));
  selection.limit = 0;
  selection.threshold = 0.3;
  EXPECT_THAT(ProfileText(Web(), selection, {}), Not(HasSubstr("svm_vmexit_handler")));
}

TEST(ProfileText, ShowsTheFirstDomainsAndTheSumOfTheOthers) {
  ProfileReport report = WebWithInstructions();
  report.result.rows.clear();
  report.result.domains.clear();
  const auto domains = static_cast<uint16_t>(kMostDomains + 5);
  for (uint16_t id = 1; id <= domains; ++id) {
    for (auto* rows : {&report.result.rows, &report.result.domains}) {
      rows->push_back(MakeRow(id, Mode::kUser, "hash", id, id * 1e-3));
      rows->back().event_samples = {static_cast<double>(id), 2};
      rows->back().ratios = {{1.0, 0.75, 1.25}};
    }
  }
  ProfileSelection selection;
  selection.limit = 3;
  // 1 + ... + 5 = 15; 5 times 2 of 40 samples.
  const std::string others =
      "   15.0    1.50%                15.0 M        25.00%                       (5 more; --limit "
      "0)\n";
  const std::string text = ProfileText(report, selection, {});
  EXPECT_THAT(text, HasSubstr(others));
  EXPECT_THAT(text, HasSubstr(" d6\n"));
  EXPECT_THAT(text, Not(HasSubstr(" d5\n")));
  selection.limit = 0;
  EXPECT_THAT(ProfileText(report, selection, {}), Not(HasSubstr("more")));
  selection.limit = 3;
  selection.domains = {DomainId{1}, DomainId{2}};
  EXPECT_THAT(ProfileText(report, selection, {}), HasSubstr(" d1 web\n"));
  // With a row for each domain, the limit is that of rows.
  report.by = {Dimension::kDomain};
  selection = {};
  selection.limit = kMostDomains;
  EXPECT_THAT(ProfileText(report, selection, {}), HasSubstr(others));
  // Programs get all.
  selection = {};
  const auto json = ProfileJson(report, selection);
  EXPECT_EQ(json["rows"].size(), kMostDomains + 5);
}

TEST(ProfileText, SumsUpChangesOfManyDomains) {
  ProfileReport report = Web();
  for (size_t i = 0; i < kMostDomains + 2; ++i) report.changes.push_back(fmt::format("d{}: up", i));
  EXPECT_THAT(ProfileText(report, {}, {}),
              HasSubstr(fmt::format("during the recording: d{}: up\nduring the recording: 2 more "
                                    "domains changed; --format json has them\n",
                                    kMostDomains - 1)));
  report.changes.resize(kMostDomains);
  EXPECT_THAT(ProfileText(report, {}, {}), Not(HasSubstr("domains changed")));
}

TEST(ProfileText, ReportsDomainChecks) {
  ProfileReport report = Web();
  report.result.checks = {{DomainId{1}, 0.8, 0.6, 0.01}, {DomainId{0}, 0.2, 0.21, 0.01}};
  report.counts.lost_records = 5;
  const std::string text = ProfileText(report, {}, {});
  EXPECT_THAT(text, HasSubstr("note: Samples and trace disagree (web has 80.00% of the samples "
                              "but 60.00% of the time). The trace lost records."));
  EXPECT_THAT(text, Not(HasSubstr("d0 has")));
}

TEST(ProfileText, ReportsWhatOfTheTraceCouldNotBeRead) {
  ProfileReport report = Web();
  EXPECT_THAT(ProfileText(report, {}, {}), Not(HasSubstr("damaged")));
  report.counts.unread = {.damages = 1, .damaged_bytes = 5012, .malformed = 2};
  const std::string text = ProfileText(report, {}, {});
  EXPECT_THAT(text, HasSubstr("\n1 damaged place in the trace, of 5,012 bytes: what was recorded "
                              "there is missing (`xenoscope summary` lists the places)\n"));
  EXPECT_THAT(text,
              HasSubstr("\n2 trace records are left out: no version of Xen writes such a size "
                        "or vCPU number\n"));
  const auto json = ProfileJson(report, {})["trace"];
  EXPECT_EQ(json["damages"], 1);
  EXPECT_EQ(json["damaged_bytes"], 5012);
  EXPECT_EQ(json["malformed_records"], 2);
}

TEST(ProfileText, ReportsPlacementNotes) {
  ProfileReport report = Web();
  report.cautions = {"they are not random"};
  EXPECT_THAT(ProfileText(report, {}, {}), HasSubstr("\nnote: they are not random\n"));
}

TEST(ProfileText, ShowsSubreasonAndRunQueue) {
  ProfileReport report = Web();
  report.by = {Dimension::kSubreason, Dimension::kWaiting, Dimension::kLine};
  report.waiting_sets = {{}, {}, {{DomainId{1}, VcpuId{0}}, {DomainId{2}, VcpuId{1}}}};
  ProfileRow row = report.result.rows[0];
  row.exit = {.kind = ContextKind::kExit,
              .reason = trace::kVmexitIoio,
              .exit_kind = correlate::ExitKind::kPortRead,
              .waiting = 2,
              .number = 0x60};
  row.line = "a.c:7";
  const auto text = [&](Dimension dimension) { return DimensionText(report, row, dimension); };
  EXPECT_EQ(text(Dimension::kSubreason), "io_read 0x60 (keyboard)");
  EXPECT_EQ(text(Dimension::kWaiting), "d1v0 d2v1");
  EXPECT_EQ(text(Dimension::kLine), "a.c:7");
  EXPECT_EQ(text(Dimension::kWakeup), "-");
  row.exit.wakeup = correlate::Wakeup::kOther;
  EXPECT_EQ(text(Dimension::kWakeup), "(other)");
  row.exit.wakeup = correlate::Wakeup::kVector + 0x31;
  EXPECT_EQ(text(Dimension::kWakeup), "vector 0x31");
  row.exit.waiting = correlate::RunQueues::kOthers;
  EXPECT_EQ(text(Dimension::kWaiting), "(others)");
  row.exit = Context{ContextKind::kGuest};
  EXPECT_EQ(text(Dimension::kSubreason), "-");
  EXPECT_EQ(text(Dimension::kWaiting), "-");
}

TEST(ProfileText, NamesEntriesThatAreUnknown) {
  using Kind = correlate::StackFrame::Kind;
  ProfileReport report = Web();
  report.by = {Dimension::kStack};
  report.result.exits = {{ContextKind::kRunning}, {ContextKind::kExit, false, trace::kVmexitCpuid}};
  report.result.stacks = {{{{}, Mode::kXen, 0, Kind::kExit, 0}},
                          {{{}, Mode::kXen, 0, Kind::kExit, 1}}};
  ProfileRow row = report.result.rows[0];
  row.stack = 0;
  EXPECT_THAT(StackNames(report, row), ElementsAre("[entry unknown]"));
  row.stack = 1;
  EXPECT_THAT(StackNames(report, row), ElementsAre("VMEXIT_CPUID"));
}

TEST(ProfileText, ShowsBehalf) {
  ProfileReport report = Web();
  ProfileRow row = report.result.rows[0];
  EXPECT_EQ(DimensionText(report, row, Dimension::kBehalf), "-");
  row.behalf = DomainId{1};
  EXPECT_EQ(DimensionText(report, row, Dimension::kBehalf), "web");
}

TEST(ProfileCsv, HasTheColumnsOfByThenTheFigures) {
  ProfileReport report = Web();
  report.result.rows.resize(1);
  EXPECT_EQ(ProfileCsv(report, {}),
            "domain,mode,function,samples,share,low,high,cycles,domid\r\n"
            "web,user,hash,60,0.6,0.3,1.2,600000000,1\r\n");
}

TEST(ProfileJson, KeepsItsKeys) {
  ProfileReport report = Web();
  report.by = {Dimension::kExit};
  report.result.rows.resize(1);
  report.result.rows[0].exit = Context{ContextKind::kExit, true, trace::kVmexitCpuid};
  const nlohmann::ordered_json json = ProfileJson(report, {});
  EXPECT_EQ(json["samples"]["total"], 102);
  EXPECT_EQ(json["samples"]["attributed"], 100);
  EXPECT_EQ(json["samples"]["remainders"]["trace_lost"], 2);
  EXPECT_EQ(json["samples"]["remainders"]["not_running"], 0);
  EXPECT_EQ(json["rows"][0].dump(),
            R"({"exit":"nested VMEXIT_CPUID","samples":60.0,"share":0.6,"low":0.3,"high":1.2,)"
            R"("cycles":600000000})");
  EXPECT_EQ(ContextName(report, {ContextKind::kGuest, true}), "nested guest");
  EXPECT_EQ(ContextName(report, {ContextKind::kTransition, true}), "nested transition");
  EXPECT_EQ(ContextName(report, {ContextKind::kGuest}), "guest");
}

TEST(Dimensions, HaveTheNamesOfTheCommandLine) {
  EXPECT_THAT(*ParseDimensions("function,domain"),
              ElementsAre(Dimension::kFunction, Dimension::kDomain));
  EXPECT_EQ(ParseDimensions("domain,functions").status().message(),
            "there is no column 'functions'; choose from "
            "domain,vcpu,pcpu,mode,exit,subreason,waiting,wakeup,thread,process,container,behalf,"
            "image,function,line,address,page,stack,placing,host");
  EXPECT_EQ(ParseDimensions("mode,mode").status().message(),
            "column 'mode' is named twice; name it once");
  EXPECT_TRUE(IsSortKey({Dimension::kExit}, "exit"));
  EXPECT_TRUE(IsSortKey({Dimension::kExit}, "cycles"));
  EXPECT_FALSE(IsSortKey({Dimension::kExit}, "function"));
}

}  // namespace
}  // namespace xenoscope::report
