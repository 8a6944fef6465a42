#include "report/stat/stat_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace xenoscope::report {
namespace {

using profile::EventTotal;
using profile::TotalKind;
using profile::TotalsBy;

EventTotal Total(size_t event, TotalKind kind, double count) {
  EventTotal total;
  total.event = event;
  total.kind = kind;
  total.count = count;
  return total;
}

// A command's totals: one of each kind.
StatReport OfCommand() {
  StatReport report;
  report.subject = "`gzip`";
  report.totals.seconds = 2;
  report.totals.events = {{"task-clock", true}, {"cycles"}, {"instructions"}, {"branches"}};
  report.totals.ratios = {{"ipc", "IPC", "instructions per cycle", false, {2, 1, 1}}};
  report.totals.totals = {Total(0, TotalKind::kExact, 1.5e9), Total(1, TotalKind::kScaled, 4e9),
                          Total(2, TotalKind::kEstimated, 3e9),
                          Total(3, TotalKind::kNotCounted, 0)};
  report.totals.totals[1].measured = 0.25;
  report.totals.totals[2].has_interval = true;
  report.totals.totals[2].low = 2.9e9;
  report.totals.totals[2].high = 3.1e9;
  report.totals.totals[2].ratio_column = 0;
  report.totals.totals[2].ratio = {0.75, 0.7, 0.8};
  report.domain_name = [](DomainId domain) { return domain == kDom0 ? "" : "web"; };
  return report;
}

StatReport OfDomains() {
  StatReport report = OfCommand();
  report.subject = "all processes";
  report.by = TotalsBy::kVcpu;
  report.time = 2.5;
  report.totals.totals.resize(2);
  report.totals.totals[0].domain = kDom0;
  report.totals.totals[0].vcpu = VcpuId{1};
  report.totals.totals[1].domain = DomainId{3};
  report.totals.totals[1].vcpu = VcpuId{0};
  return report;
}

TEST(StatTextTest, DividesByTheStretchOfTheEvent) {
  StatReport report = OfCommand();
  report.totals.totals.resize(1);
  report.totals.events[0].seconds = 1.5;
  EXPECT_EQ(StatJson(report)["rows"][0]["per_second"], 1e9);
}

TEST(StatTextTest, NamesPcpus) {
  StatReport report = OfCommand();
  report.by = TotalsBy::kPcpu;
  report.totals.totals.resize(1);
  report.totals.totals[0].pcpu = PcpuId{3};
  EXPECT_EQ(StatJson(report)["rows"][0]["pcpu"], 3);
  report.totals.totals[0].pcpu.reset();  // samples without a place
  EXPECT_TRUE(StatJson(report)["rows"][0]["pcpu"].is_null());
}

TEST(StatTextTest, MarksHowEachTotalIsKnown) {
  EXPECT_EQ(
      StatText(OfCommand(), {}),
      "`gzip` in 2.000 s\n"
      "\n"
      "        count            low           high  per second  unit    event         kind         "
      "measured  ratio    low   high  of\n"
      "1,500,000,000                                   750.0 M  ns      task-clock    exact\n"
      "4,000,000,000                                    2.00 G  events  cycles        scaled       "
      "  25.00%\n"
      "3,000,000,000  2,900,000,000  3,100,000,000      1.50 G  events  instructions  estimated    "
      "          0.750  0.700  0.800  instructions per cycle\n"
      "                                                         events  branches      not counted\n"
      "\n"
      "exact: read from counters that counted all of the time\n"
      "scaled: events took turns: counts of a part of the time (measured), divided by that part\n"
      "estimated: samples times the period; low, high: 95 % interval\n"
      "not counted: this machine cannot count it, or it had no turn\n");
}

// Empty columns are left out.
TEST(StatTextTest, ShowsTheTableAloneOfIntervals) {
  EXPECT_EQ(
      StatText(OfDomains(), {}),
      "   time  domain  vcpu          count  per second  unit    event       kind    measured\n"
      "2.500 s  d0         1  1,500,000,000     750.0 M  ns      task-clock  exact\n"
      "2.500 s  web        0  4,000,000,000      2.00 G  events  cycles      scaled    25.00%\n");
}

TEST(StatTextTest, ShowsMeansOfRuns) {
  StatReport report = OfCommand();
  report.runs = 3;
  report.totals.totals.resize(1);
  report.totals.totals[0].has_interval = true;
  report.totals.totals[0].low = 1.4e9;
  report.totals.totals[0].high = 1.6e9;
  EXPECT_EQ(StatText(report, {}),
            "`gzip` in 2.000 s\n"
            "means of 3 runs; low, high: 95 % interval of the mean\n"
            "\n"
            "        count            low           high  per second  unit  event       kind\n"
            "1,500,000,000  1,400,000,000  1,600,000,000     750.0 M  ns    task-clock  exact\n"
            "\n"
            "exact: read from counters that counted all of the time\n");
}

TEST(StatCsvTest, NamesCpusWhereThereAreNoDomains) {
  StatReport report = OfDomains();
  report.time.reset();
  report.totals.totals.resize(1);
  report.totals.totals[0].domain.reset();
  EXPECT_THAT(StatCsv(report, /*with_titles=*/true), testing::HasSubstr("cpu,count,"));
  EXPECT_THAT(StatCsv(report, /*with_titles=*/true), testing::HasSubstr("\r\n1,1500000000,"));
}

TEST(StatCsvTest, HasAllColumns) {
  const std::string rows =
      "1500000000,,,750000000,ns,task-clock,exact,,,,,\r\n"
      "4000000000,,,2e+09,events,cycles,scaled,0.25,,,,\r\n"
      "3000000000,2900000000,3100000000,1.5e+09,events,instructions,estimated,,0.75,0.7,0.8,"
      "instructions per cycle\r\n"
      ",,,,events,branches,not counted,,,,,\r\n";
  EXPECT_EQ(StatCsv(OfCommand(), /*with_titles=*/true),
            "count,low,high,per_second,unit,event,kind,measured,ratio,ratio_low,ratio_high,"
            "ratio_of\r\n" +
                rows);
  EXPECT_EQ(StatCsv(OfCommand(), /*with_titles=*/false), rows);
}

TEST(StatJsonTest, HasRowsByDomain) {
  const nlohmann::ordered_json json = StatJson(OfDomains());
  EXPECT_EQ(json["time"], 2.5);
  EXPECT_EQ(json["seconds"], 2);
  EXPECT_EQ(json["rows"][1]["domain"], "web");
  EXPECT_EQ(json["rows"][0]["vcpu"], 1);
  EXPECT_EQ(json["rows"][0]["count"], 1'500'000'000);
  EXPECT_TRUE(json["rows"][0]["low"].is_null());
  EXPECT_FALSE(StatJson(OfCommand()).contains("time"));
}

}  // namespace
}  // namespace xenoscope::report
