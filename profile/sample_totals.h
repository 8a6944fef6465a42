// Adds up the samples of a recording's events by domain, vCPU or pCPU, and estimates their totals
// (docs/method.md, section 10).
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "correlate/event_sums.h"
#include "profile/event_comparison.h"
#include "profile/event_totals.h"
#include "profile/recorded_samples.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// What a total is of, but for the event.
struct TotalKey {
  std::optional<DomainId> domain;
  std::optional<VcpuId> vcpu;
  std::optional<PcpuId> pcpu;
  auto operator<=>(const TotalKey&) const = default;
};

// Returns the key by `by` of what is known.
[[nodiscard]] TotalKey KeyOf(TotalKey known, TotalsBy by);
[[nodiscard]] TotalKey KeyOf(const EventTotal& total);
void SetKey(const TotalKey& key, EventTotal& total);

// Returns the column of the event's ratio: a part of another event, else the first ratio.
[[nodiscard]] std::optional<size_t> ColumnOf(const std::vector<RatioColumn>& ratios, size_t event);

// Sets the ratio of each total by `ratio`, which is called with the total and the one by which it
// is divided.
template <typename Ratio>
void ForEachRatio(EventTotals& totals, Ratio ratio) {
  for (EventTotal& total : totals.totals) {
    const std::optional<size_t> column = ColumnOf(totals.ratios, total.event);
    if (!column || total.kind == TotalKind::kNotCounted) continue;
    const size_t denominator = totals.ratios[*column].ratio.denominator;
    const auto other = std::ranges::find_if(totals.totals, [&](const EventTotal& each) {
      return each.event == denominator && KeyOf(each) == KeyOf(total) &&
             each.kind != TotalKind::kNotCounted;
    });
    if (other == totals.totals.end()) continue;
    total.ratio_column = column;
    ratio(totals.ratios[*column].ratio, *other, total);
  }
}

// The samples of a recording's events by row.
class SampleTotals {
 public:
  explicit SampleTotals(EventComparison comparison)
      : comparison_(std::move(comparison)), sums_(comparison_.events.size()) {}

  // Adds a row, which may get no sample.
  void AddRow(const TotalKey& key) { (void)NumberOf(key); }
  // Adds a part in (0, 1] of the sample at hand, of an event of the comparison.
  void Add(const TotalKey& key, size_t event, double part);
  void EndSample() { sums_.EndCluster(); }

  // Returns the totals of rows of these domains; of all, if there are none.
  [[nodiscard]] EventTotals Finish(const std::vector<DomainId>& domains) const;

 private:
  uint32_t NumberOf(const TotalKey& key);
  void AddTotals(const TotalKey& key, uint32_t row, EventTotals& totals) const;

  EventComparison comparison_;
  std::map<TotalKey, uint32_t> rows_;
  correlate::EventSums sums_;
  std::vector<double> doubts_;  // by row and event: the variance of the number of its samples
};

// The samples of a recording's events that count something, and how these are compared.
struct CountedSamples {
  EventComparison comparison;
  std::vector<uint8_t> numbers;  // EventNumbers
  SampleSelection selection;
  RecordedSamples samples;

  // Leaves out the first bytes of each source's file (SampleSelection::skipped_bytes). Nothing: the
  // recording's events count nothing. Errors: those of reading.
  static absl::StatusOr<std::optional<CountedSamples>> Open(const recording::Recording& recording,
                                                            std::vector<uint64_t> skipped_bytes);
};

}  // namespace xenoscope::profile
