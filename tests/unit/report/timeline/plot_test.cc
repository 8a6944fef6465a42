#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "report/terminal_text.h"
#include "report/timeline/plot.h"
#include "report/timeline/plot_axis.h"
#include "report/timeline/plot_svg.h"
#include "report/timeline/plot_terminal.h"

namespace xenoscope::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  labels.reserve(ticks.size());
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

TEST(PlotAxisTest, TicksAreRound) {
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kNumber, 0, 10, 6)),
              ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kShare, 0, 1, 6)),
              ElementsAre("0%", "20%", "40%", "60%", "80%", "100%"));
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kNumber, 0, 80'000, 5)),
              ElementsAre("0", "20 k", "40 k", "60 k", "80 k"));
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kSeconds, 0, 0.0031, 4)), ElementsAre("0", "2 ms"));
}

TEST(PlotAxisTest, IntegersAndStatesHaveNoFractions) {
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kInteger, -0.5, 1.5, 9)), ElementsAre("0", "1"));
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kState, -1.5, 3.5, 9)),
              ElementsAre("lost", "blocked", "offline", "runnable", "running"));
}

TEST(PlotAxisTest, HandlesHugeAndEmptyExtents) {
  EXPECT_THAT(Labels(LinearTicks(AxisKind::kNumber, 0, 1.8e19, 4)), ElementsAre("0", "10 E"));
  EXPECT_THAT(LinearTicks(AxisKind::kNumber, 5, 5, 6), IsEmpty());
  EXPECT_EQ(RoundUp(0), 1);
  EXPECT_DOUBLE_EQ(RoundUp(99.2), 100);
  EXPECT_DOUBLE_EQ(RoundUp(0.263), 0.3);
}

TEST(PlotAxisTest, LogarithmicTicksHaveTheirOwnUnits) {
  EXPECT_THAT(Labels(LogTicks(AxisKind::kSeconds, 5e-6, 0.02, 9)),
              ElementsAre("10 us", "100 us", "1 ms", "10 ms"));
  EXPECT_THAT(Labels(LogTicks(AxisKind::kSeconds, 1e-3, 1e-2, 9)),
              ElementsAre("1 ms", "2 ms", "5 ms", "10 ms"));
}

TEST(PlotAxisTest, SkipsEmptyAddressRanges) {
  BrokenAxis axis;
  axis.Add(0xffffffff81000000);
  axis.Add(0x401000);
  axis.Add(0x401234);
  axis.Finish();
  EXPECT_LT(axis.Place(0x401000), axis.Place(0x401234));
  EXPECT_LT(axis.Place(0x401234), axis.Place(0xffffffff81000000));
  EXPECT_DOUBLE_EQ(axis.Place(0xffffffff81000000), 0.5);
  EXPECT_THAT(Labels(axis.Ticks(9)), ElementsAre("0x401000", "0xffffffff81000000"));
}

TEST(PlotAxisTest, HandlesManyAddressRanges) {
  BrokenAxis axis;
  for (uint64_t i = 0; i < 100'000; ++i) axis.Add(i * 0x9e3779b97f4a7c15);
  axis.Finish();
  EXPECT_GE(axis.Place(0), 0);
  EXPECT_LT(axis.Place(UINT64_MAX), 1);
  EXPECT_LE(axis.Ticks(9).size(), 10U);
}

SeriesPlot TinySeries() {
  SeriesPlot plot;
  plot.title = "Run time of domains";
  plot.subtitle = "a <b> & \"c\"";
  plot.y_title = "share of time";
  plot.seconds = 3;
  plot.bin_seconds = 1;
  plot.stacked = true;
  plot.y_kind = AxisKind::kShare;
  plot.lines = {{"d0", "50.00%", {0.5, 0.25, 0.75}, {}, false},
                {"(other)", "20.00%", {0.1, 0.5, 0}, {}, true}};
  return plot;
}

ScatterPlot TinyScatter(bool exact) {
  ScatterPlot plot;
  plot.title = "Where vCPUs run";
  plot.y_title = "pCPU";
  plot.seconds = 1;
  plot.columns = 4;
  plot.rows = 4;
  plot.y_ticks = {{0.25, "0"}, {0.75, "1"}};
  plot.lines = {{"d1v0", "3", {}, {}, false}};
  plot.exact = exact;
  if (exact) {
    plot.points = {{0, 0, 0.25}, {0, 0.5, 0.75}, {0, 1, 0.75}};
  } else {
    plot.lines[0].cells = {1, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  }
  return plot;
}

// When the pictures differ, the test leaves its drawing in its temporary folder.
void ExpectGolden(const std::string& drawn, const std::string& name) {
  std::ifstream file(std::string(XENOSCOPE_TEST_DATA) + "/plot/" + name);
  const std::string golden((std::istreambuf_iterator<char>(file)), {});
  if (drawn == golden) return;
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << drawn;
  ADD_FAILURE() << "not as in " << name << "; now in " << path;
}

TEST(PlotSvgTest, MatchesGolden) {
  ExpectGolden(ToSvg(TinySeries()), "stacked.svg");
  ExpectGolden(ToSvg(TinyScatter(true)), "points.svg");
  ExpectGolden(ToSvg(TinyScatter(false)), "density.svg");
}

TEST(PlotSvgTest, IsSelfContained) {
  const std::string svg = ToSvg(TinySeries());
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot;"));
}

TEST(PlotSvgTest, HandlesPlotsWithoutPoints) {
  EXPECT_THAT(ToSvg(SeriesPlot{}), HasSubstr("no such events"));
  EXPECT_THAT(ToSvg(ScatterPlot{}), HasSubstr("no such events"));
  SeriesPlot flat = TinySeries();
  flat.lines = {{"d0", "", {0}, {}, false}};
  EXPECT_THAT(ToSvg(flat), Not(HasSubstr("nan")));
}

TEST(PlotTerminalTest, DrawsBars) {
  EXPECT_EQ(ToTerminal(TinySeries(), {60, 8, false}),
            "Run time of domains\na <b> & \"c\"\n\n"
            "                d0 ▅▃█ 50.00%\n"
            "           (other) ▁▅  20.00%\n"
            "                   ┴──\n"
            "                   0\n"
            "A full bar is 80% of time.\n");
}

TEST(PlotTerminalTest, DrawsPointsAndColours) {
  const std::string text = ToTerminal(TinyScatter(false), {60, 14, false});
  EXPECT_THAT(text, HasSubstr("d1v0 3"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ForTerminal(ToTerminal(TinyScatter(false), {60, 14, true})),
              HasSubstr("\x1b[38;2;0;114;178m"));
  EXPECT_THAT(ToTerminal(ScatterPlot{}, {}), HasSubstr("no such events"));
}

}  // namespace
}  // namespace xenoscope::report
