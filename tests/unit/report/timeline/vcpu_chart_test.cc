#include "report/timeline/vcpu_chart.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "analysis/trace_division.h"
#include "report/terminal_text.h"
#include "report/timeline/vcpu_chart_svg.h"
#include "report/timeline/vcpu_chart_terminal.h"
#include "tests/unit/analysis/analyse_one.h"
#include "tests/unit/analysis/random_trace.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/probe.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using trace::kIdle;
using trace::Rec;
using trace::TraceBuilder;
using trace::Vcpu;

// On pCPU 0, d1v0 runs for 10 cycles. Then d2v0 runs for 20 cycles while d1v0 waits. Then the pCPU
// is idle for 10 cycles, and d1v0 runs for 20 cycles again. An exit of d2v0 takes 5 of its cycles.
TraceBuilder TwoDomains() {
  TraceBuilder trace;
  trace.Window(0, {Rec(trace::kRunnableToRunning, 100, {Vcpu(1, 0)}),
                   Rec(trace::kRunningToRunnable, 110, {Vcpu(1, 0)}),
                   Rec(trace::kRunnableToRunning, 110, {Vcpu(2, 0)}),
                   Rec(trace::kVmexit64, 115, {trace::kVmexitCpuid, 0x1000, 0}),
                   Rec(trace::kVmentry, 120, {}), Rec(trace::kRunningToBlocked, 130, {Vcpu(2, 0)}),
                   Rec(trace::kRunnableToRunning, 130, {Vcpu(kIdle, 0)}),
                   Rec(trace::kRunningToRunnable, 140, {Vcpu(kIdle, 0)}),
                   Rec(trace::kRunnableToRunning, 140, {Vcpu(1, 0)}),
                   Rec(trace::kRunningToBlocked, 160, {Vcpu(1, 0)})});
  return trace;
}

VcpuChart Chart(const trace::TraceFile& file, const VcpuChartOptions& options,
                const analysis::TraceDivision& division = {}) {
  const auto make = [&options] {
    std::vector<std::unique_ptr<analysis::Analysis>> analyses;
    analyses.push_back(std::make_unique<VcpuChartBuilder>(options));
    return analyses;
  };
  const auto result = analysis::AnalyseDivision(file, {}, make, division);
  EXPECT_TRUE(result.ok()) << result.status();
  return static_cast<const VcpuChartBuilder&>(*result->analyses->front()).Build();
}

VcpuChart Chart(const TraceBuilder& bytes, const VcpuChartOptions& options) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok()) << file.status();
  return Chart(*file, options);
}

TscRange Shown(uint64_t begin, uint64_t end) { return {Tsc{begin}, Tsc{end}}; }

// Returns "0.50 0.25 0 0.25 0": guest, Xen, undivided, runnable, blocked.
std::string Line(const VcpuBin& part) {
  std::vector<std::string> parts;
  for (const float each : part.cycles) parts.push_back(fmt::format("{:.2g}", each));
  return fmt::format("{}", fmt::join(parts, " "));
}
std::vector<std::string> Lines(const VcpuChartRow& row) {
  std::vector<std::string> lines;
  for (const VcpuBin& part : row.parts) lines.push_back(Line(part));
  return lines;
}
std::vector<std::string> Lines(const PcpuChartRow& row) {
  std::vector<std::string> lines;
  for (const PcpuChartRow::Part& part : row.parts) {
    lines.push_back(part.longest_vcpu == VcpuChart::kNoVcpu
                        ? fmt::format("{:.2g} -", part.busy)
                        : fmt::format("{:.2g} {}", part.busy, part.longest_vcpu));
  }
  return lines;
}

TEST(VcpuChart, ShowsActivityPerColumn) {
  const VcpuChart chart = Chart(TwoDomains(), {.shown = Shown(100, 160), .columns = 3});
  ASSERT_EQ(chart.vcpus.size(), 2U);
  EXPECT_EQ(ToString(chart.vcpus[0].vcpu), "d1v0");
  EXPECT_THAT(Lines(chart.vcpus[0]), ElementsAre("0 0 0.5 0.5 0", "0 0 0 1 0", "0 0 1 0 0"));
  // The vCPU was in the guest before its first exit.
  EXPECT_THAT(Lines(chart.vcpus[1]), ElementsAre("0.25 0.25 0 0 0", "0.5 0 0 0 0.5", "0 0 0 0 1"));
  EXPECT_DOUBLE_EQ(chart.vcpus[0].ran, 0.5);
  EXPECT_DOUBLE_EQ(chart.vcpus[0].waited, 0.5);
  EXPECT_NE(chart.vcpus[0].colour, chart.vcpus[1].colour);
  ASSERT_EQ(chart.pcpus.size(), 1U);
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("1 0", "0.5 1", "1 0"));
  EXPECT_DOUBLE_EQ(chart.pcpus[0].busy, 50.0 / 60);
}

//   cycle  100   103   107   110
//   p0     d1v0  d3v0  d2v0  idle: d3v0 ran most, but less than half of the time
TEST(VcpuChart, NamesTheVcpuThatRanMost) {
  TraceBuilder trace;
  trace.Window(0, {Rec(trace::kRunnableToRunning, 100, {Vcpu(1, 0)}),
                   Rec(trace::kRunningToBlocked, 103, {Vcpu(1, 0)}),
                   Rec(trace::kRunnableToRunning, 103, {Vcpu(3, 0)}),
                   Rec(trace::kRunningToBlocked, 107, {Vcpu(3, 0)}),
                   Rec(trace::kRunnableToRunning, 107, {Vcpu(2, 0)}),
                   Rec(trace::kRunningToBlocked, 110, {Vcpu(2, 0)})});
  const VcpuChart chart = Chart(trace, {.shown = Shown(100, 110), .columns = 1});
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("1 2"));  // the third row
}

TEST(VcpuChart, ShowsAPartOfTheTime) {
  const VcpuChart chart = Chart(TwoDomains(), {.shown = Shown(105, 115), .columns = 2});
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("1 0", "1 1"));
  EXPECT_DOUBLE_EQ(chart.vcpus[0].ran, 0.5);
}

TEST(VcpuChart, HasNoMoreColumnsThanCycles) {
  const VcpuChart chart = Chart(TwoDomains(), {.shown = Shown(100, 104), .columns = 100});
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("1 0", "1 0", "1 0", "1 0"));
}

TEST(VcpuChart, ShowsTheLastInstantsOfAllTime) {
  const TscRange shown = Shown(UINT64_MAX - 98, UINT64_MAX);
  // The fifth column would end behind them.
  VcpuChartBuilder builder({.shown = shown, .columns = 5});
  correlate::RunstateInterval run;
  run.vcpu = {DomainId{1}, VcpuId{0}};
  run.range = shown;
  run.state = correlate::TimelineState::kRunning;
  builder.OnRunstateInterval(run);
  const VcpuChart chart = builder.Build();
  ASSERT_EQ(chart.pcpus.size(), 1U);
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("1 0", "1 0", "1 0", "1 0", "1 0"));
}

TEST(VcpuChart, FiltersVcpus) {
  const VcpuChartOptions all{.shown = Shown(100, 160), .columns = 1};
  VcpuChartOptions options = all;
  options.only = {DomainId{2}};
  VcpuChart chart = Chart(TwoDomains(), options);
  ASSERT_EQ(chart.vcpus.size(), 1U);
  EXPECT_EQ(ToString(chart.vcpus[0].vcpu), "d2v0");
  EXPECT_EQ(chart.left_out, 0U);
  EXPECT_THAT(Lines(chart.pcpus[0]), ElementsAre("0.83 -")) << "d1 ran most, and is not shown";

  options = all;
  options.max_vcpus = 1;
  chart = Chart(TwoDomains(), options);
  ASSERT_EQ(chart.vcpus.size(), 1U);
  EXPECT_EQ(ToString(chart.vcpus[0].vcpu), "d1v0") << "it ran longer";
  EXPECT_EQ(chart.left_out, 1U);
}

// The traces contradict themselves. A thread that begins in the middle warms up by half of what
// comes before.
TEST(VcpuChart, IsTheSameWhereverATraceIsDivided) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    const analysis::RandomTrace random(seed, seed % 3 == 0 ? 8 : 4);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const Tsc begin = file->Stream().next_tsc();
    const Tsc end = trace::LastTsc(*file) + 1;
    const VcpuChartOptions options{.shown = {begin, end}, .columns = 50};
    const VcpuChart whole = Chart(*file, options);
    for (const uint64_t steps : {2, 7, 40}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << steps << " steps");
      const VcpuChart divided =
          Chart(*file, options,
                analysis::PartitionAtEach(analysis::EqualSteps(options.shown, steps, 0.5)));
      ASSERT_EQ(divided.vcpus.size(), whole.vcpus.size());
      for (size_t i = 0; i < whole.vcpus.size(); ++i) {
        EXPECT_EQ(Lines(divided.vcpus[i]), Lines(whole.vcpus[i]));
        EXPECT_EQ(divided.vcpus[i].ran, whole.vcpus[i].ran);
      }
      ASSERT_EQ(divided.pcpus.size(), whole.pcpus.size());
      for (size_t i = 0; i < whole.pcpus.size(); ++i) {
        EXPECT_EQ(Lines(divided.pcpus[i]), Lines(whole.pcpus[i]));
      }
    }
  }
}

//   cycle  100   110, 120, ... 1090      1095
//   p0     d1v0  a new timeslice of it   blocked
// The second thread, which warms up from 400 on, does not see since when it runs.
TEST(VcpuChart, HasTheWholeOfALongRun) {
  TraceBuilder bytes;
  for (uint64_t begin = 100; begin < 1100; begin += 100) {
    std::vector<std::vector<uint32_t>> records;
    for (uint64_t at = begin; at < begin + 100; at += 10) {
      const uint32_t what = at == 100 ? trace::kRunnableToRunning : trace::kContinueRunning;
      records.push_back(Rec(what, at, {Vcpu(1, 0)}));
    }
    if (begin == 1000) records.push_back(Rec(trace::kRunningToBlocked, 1095, {Vcpu(1, 0)}));
    bytes.Window(0, records);
  }
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  const VcpuChart chart = Chart(*file, {.shown = Shown(100, 1100), .columns = 1},
                                analysis::PartitionAtEach({{Tsc{500}, Tsc{400}}}));
  ASSERT_EQ(chart.vcpus.size(), 1U);
  EXPECT_DOUBLE_EQ(chart.vcpus[0].ran, 0.995);
}

TEST(VcpuChart, IsDrawnInATerminal) {
  VcpuChart chart = Chart(
      TwoDomains(), {.shown = Shown(100, 160), .columns = 6, .domain_name = [](DomainId domain) {
                       return domain == DomainId{1} ? "web" : "";
                     }});
  chart.to = 60e-9;
  const std::string text = ToTerminal(chart, {80, 24, false});
  EXPECT_THAT(text, HasSubstr("              pCPU 0 abb aa  83.33% busy\n"));
  EXPECT_THAT(text, HasSubstr("          web d1v0 a █░░░██  50.00%  50.00%\n"));
  EXPECT_THAT(text, HasSubstr("              d2v0 b  ██     33.33%   0.00%\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ForTerminal(ToTerminal(chart, {80, 24, true})), HasSubstr("\x1b[38;2;"));
}

TEST(VcpuChart, IsDrawnAsSvg) {
  VcpuChart chart = Chart(
      TwoDomains(),
      {.shown = Shown(100, 160), .columns = 6, .domain_name = [](DomainId) { return "<web>"; }});
  chart.title = "a & b";
  const std::string svg = ToSvg(chart);
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;web&gt; d1v0: waited for a pCPU</title>"));
  EXPECT_THAT(svg, HasSubstr("50.00 % ran, 50.00 % waited"));
  EXPECT_THAT(svg, Not(HasSubstr("<web>")));
}

TEST(VcpuChart, ShowsIdleTrace) {
  TraceBuilder bytes;
  bytes.Window(0, {Rec(trace::kRunnableToRunning, 100, {Vcpu(kIdle, 0)}),
                   Rec(trace::kRunningToRunnable, 160, {Vcpu(kIdle, 0)})});
  const VcpuChart chart = Chart(bytes, {.shown = Shown(100, 160), .columns = 6});
  EXPECT_THAT(chart.vcpus, IsEmpty());
  EXPECT_THAT(ToTerminal(chart, {}), HasSubstr("No vCPU ran in this time."));
}

}  // namespace
}  // namespace xenoscope::report
