#include "report/profile/watch_metrics.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "report/export/prometheus.h"

namespace xenoscope::report {
namespace {

constexpr double kNsPerSecond = 1e9;

// The rows with the largest shares, and what the others have together.
struct Shown {
  std::vector<const WatchRow*> rows;
  double other_share = 0;
  size_t others = 0;
};

Shown Largest(const Watch& watch, size_t limit) {
  Shown shown;
  shown.rows.reserve(watch.rows.size());
  for (const WatchRow& row : watch.rows) shown.rows.push_back(&row);
  std::ranges::stable_sort(shown.rows, std::ranges::greater(), &WatchRow::share);
  for (size_t i = limit; i < shown.rows.size(); ++i) {
    shown.other_share += shown.rows[i]->share;
    ++shown.others;
  }
  if (shown.rows.size() > limit) shown.rows.resize(limit);
  return shown;
}

class RowMetrics {
 public:
  RowMetrics(const Watch& watch, const Shown& shown, PrometheusText& out)
      : watch_(watch), shown_(shown), out_(out) {}

  template <typename Value>
  void Add(std::string_view metric, std::string_view help, Value value) {
    out_.Begin(metric, help);
    for (const WatchRow* row : shown_.rows) {
      std::vector<MetricLabel> labels = {{"event", watch_.event}};
      for (size_t i = 0; i < watch_.by.size(); ++i) {
        labels.emplace_back(ToString(watch_.by[i]), row->words[i]);
      }
      out_.Add(labels, static_cast<double>(value(*row)));
    }
  }

 private:
  const Watch& watch_;
  const Shown& shown_;
  PrometheusText& out_;
};

void AddRows(const Watch& watch, const Shown& shown, PrometheusText& out) {
  RowMetrics rows(watch, shown, out);
  rows.Add("xenoscope_share_ratio", "Share of the row, of the time or the samples of all rows.",
           [](const WatchRow& row) { return row.share; });
  rows.Add("xenoscope_share_low_ratio", "Lower end of the share's 95 % interval.",
           [](const WatchRow& row) { return row.interval.low; });
  rows.Add("xenoscope_share_high_ratio", "Upper end of the share's 95 % interval.",
           [](const WatchRow& row) { return row.interval.high; });
  if (watch.has_base) {
    rows.Add("xenoscope_share_base_ratio", "Share of the row in the slices to compare with.",
             [](const WatchRow& row) { return row.base; });
  }
  if (!watch.limits.share && !watch.limits.growth) return;
  rows.Add("xenoscope_alarm", "1 where the row is above its limit by more than chance, else 0.",
           [](const WatchRow& row) { return row.IsAlarm() ? 1 : 0; });
}

void AddSums(const Watch& watch, const WatchedSlices& slices, const Shown& shown,
             PrometheusText& out) {
  const std::vector<MetricLabel> labels = {{"event", watch.event}};
  const auto add = [&](std::string_view metric, std::string_view help, double value) {
    out.Begin(metric, help);
    out.Add(labels, value);
  };
  const auto count = [](auto number) { return static_cast<double>(number); };
  add("xenoscope_other_share_ratio", "Share of the rows that have no metrics of their own.",
      shown.other_share);
  add("xenoscope_other_rows", "Number of rows that have no metrics of their own.",
      count(shown.others));
  add("xenoscope_alarms", "Number of rows above their limit, also of those without metrics.",
      count(Alarms(watch)));
  add("xenoscope_samples", "Number of samples in the slices.", watch.samples);
  add("xenoscope_slices", "Number of slices.", count(slices.slices));
  add("xenoscope_hosts", "Number of hosts that have slices.", count(slices.hosts));
  add("xenoscope_newest_slice_end_timestamp_seconds",
      "End of the newest slice, in seconds since 1970.",
      static_cast<double>(slices.newest_end_ns) / kNsPerSecond);
}

}  // namespace

std::string WatchMetrics(const Watch& watch, const WatchedSlices& slices, size_t limit) {
  PrometheusText out;
  const Shown shown = Largest(watch, limit);
  AddRows(watch, shown, out);
  AddSums(watch, slices, shown, out);
  return out.text();
}

}  // namespace xenoscope::report
