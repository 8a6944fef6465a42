#include "report/profile/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "report/profile/watch_metrics.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using testing::HasSubstr;
using testing::Not;

struct RowSpec {
  const char* function;
  double share;
};

// Makes a profile of so many samples.
ProfileReport Profile(double samples, std::initializer_list<RowSpec> rows) {
  ProfileReport report;
  report.event = "cycles";
  report.by = {Dimension::kFunction};
  report.result.samples = samples;
  for (const RowSpec& of : rows) {
    ProfileRow row;
    row.function = of.function;
    row.share = of.share;
    row.variance = of.share * (1 - of.share) / samples;
    row.interval = correlate::IntervalOf(row.share, row.variance, samples);
    report.result.rows.push_back(row);
  }
  return report;
}

std::vector<std::string> Alarmed(const Watch& watch) {
  std::vector<std::string> functions;
  for (const WatchRow& row : watch.rows) {
    if (row.IsAlarm()) functions.push_back(row.words.front());
  }
  return functions;
}

// The same share is an alarm where enough samples say so.
TEST(Watch, AlarmsOfSharesAboveTheLimitByMoreThanChance) {
  const struct {
    double samples;
    std::vector<std::string> alarms;
  } kCases[] = {{10'000, {"hash"}}, {30, {}}};
  for (const auto& each : kCases) {
    const ProfileReport now = Profile(each.samples, {{"walk", 0.5}, {"hash", 0.55}, {"copy", 0.1}});
    EXPECT_EQ(Alarmed(WatchProfile(now, nullptr, {.share = 0.5})), each.alarms) << each.samples;
  }
}

// Growth is from the base, by more than the limit; a row that the base has not seen grew from none.
TEST(Watch, AlarmsOfGrowth) {
  const ProfileReport base = Profile(10'000, {{"hash", 0.3}, {"copy", 0.2}, {"gone", 0.5}});
  const ProfileReport now =
      Profile(10'000, {{"hash", 0.45}, {"copy", 0.25}, {"fresh", 0.2}, {"few", 0.1}});
  const struct {
    double growth;
    std::vector<std::string> alarms;
  } kCases[] = {{0.02, {"hash", "copy", "fresh", "few"}}, {0.12, {"hash", "fresh"}}, {0.3, {}}};
  for (const auto& each : kCases) {
    const Watch watch = WatchProfile(now, &base, {.growth = each.growth});
    EXPECT_EQ(Alarmed(watch), each.alarms) << each.growth;
    EXPECT_EQ(watch.rows.size(), 4U);
  }
  EXPECT_EQ(Alarms(WatchProfile(base, &base, {.growth = 0})), 0U);
}

TEST(Watch, SaysWhichRowsAreInAlarm) {
  const ProfileReport base = Profile(10'000, {{"hash", 0.5}, {"copy", 0.5}});
  const ProfileReport now = Profile(10'000, {{"copy", 0.3}, {"hash", 0.7}});
  const Watch watch = WatchProfile(now, &base, {.share = 0.6, .growth = 0.1});
  EXPECT_EQ(AlarmText(watch),
            "1 row is above its limit by more than chance: hash (70.00%, +20.00%)");
  EXPECT_EQ(
      WatchText(watch, 1, {}),
      "share of all time, 10,000 samples; base: 10,000 samples\n"
      "low to high, or ±: 95 % interval; p: probability of such an alarm by chance, corrected "
      "for 2 rows\n"
      "alarm: a share above 60.00% or a growth of more than 10.00%, where p is below 0.05\n"
      "\n"
      "function   share     low    high  p        base  growth     low    high  p of growth  "
      "alarm\n"
      "hash      70.00%  69.09%  70.89%  <1e-6  50.00%  20.00%  18.67%  21.33%  <1e-6        "
      "above, grown\n");
}

// Rows in alarm are shown, whatever the limit of rows.
TEST(Watch, ShowsAllAlarms) {
  const Watch watch = WatchProfile(Profile(10'000, {{"a", 0.4}, {"b", 0.35}, {"c", 0.25}}), nullptr,
                                   {.share = 0.3});
  EXPECT_THAT(WatchCsv(watch, 1), HasSubstr("\nb,"));
  EXPECT_THAT(WatchCsv(watch, 1), Not(HasSubstr("\nc,")));
}

TEST(WatchMetrics, AreBoundedAndEscaped) {
  const ProfileReport now =
      Profile(10'000, {{"a\"b\\c\nd", 0.5}, {"copy", 0.25}, {"hash", 0.15}, {"walk", 0.1}});
  const std::string text =
      WatchMetrics(WatchProfile(now, nullptr, {.share = 0.4}), {3, 2, 1'500'000'000}, 2);
  for (const char* const line :
       {"# TYPE xenoscope_share_ratio gauge\n",
        "xenoscope_share_ratio{event=\"cycles\",function=\"a\\\"b\\\\c?d\"} 0.5\n",
        "xenoscope_share_ratio{event=\"cycles\",function=\"copy\"} 0.25\n",
        "xenoscope_alarm{event=\"cycles\",function=\"copy\"} 0\n",
        "xenoscope_other_share_ratio{event=\"cycles\"} 0.25\n",
        "xenoscope_other_rows{event=\"cycles\"} 2\n", "xenoscope_alarms{event=\"cycles\"} 1\n",
        "xenoscope_hosts{event=\"cycles\"} 2\n",
        "xenoscope_newest_slice_end_timestamp_seconds{event=\"cycles\"} 1.5\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("hash")));
}

}  // namespace
}  // namespace xenoscope::report
