#include "profile/sample_totals.h"

#include <cmath>

#include "base/error.h"
#include "correlate/estimate.h"

namespace xenoscope::profile {
namespace {

// Sets the count and its interval from `samples` of `all` samples of the event. The square of the
// standard error is that of a binomial part of what is known (complete), and one sample, as the
// last period is not whole; else it is Poisson's. `doubt` is the variance of the samples' number in
// the row that comes from their uncertain places. The ends are those of the score interval (section
// 10).
void SetEstimate(double samples, double all, bool complete, double doubt, double period,
                 EventTotal& total) {
  const double zz = correlate::kNormal95 * correlate::kNormal95;
  const double rest = complete && all > 0 ? 1 - samples / all : 1;
  const double ends = complete ? 1 : 0;
  const double spread = std::sqrt(zz * (rest * samples + ends + doubt + rest * rest * zz / 4));
  const double centre = samples + rest * zz / 2;
  total.kind = TotalKind::kEstimated;
  total.has_interval = true;
  total.count = samples * period;
  total.low = std::max(0.0, centre - spread) * period;
  total.high = (centre + spread) * period;
}

// Returns the groups of all events that count something.
std::vector<EventGroup> AllGroups(const std::vector<recording::EventInfo>& events) {
  std::vector<EventGroup> groups;
  for (size_t i = 0; i < events.size(); ++i) {
    const EventGroup group = GroupOf(events, static_cast<uint16_t>(i));
    if (group.front() == i && !events[i].waiting) groups.push_back(group);
  }
  return groups;
}

}  // namespace

TotalKey KeyOf(TotalKey known, TotalsBy by) {
  switch (by) {
    case TotalsBy::kAll:
      return {};
    case TotalsBy::kDomain:
      return {known.domain, {}, {}};
    case TotalsBy::kVcpu:
      return {known.domain, known.vcpu, {}};
    case TotalsBy::kPcpu:
      break;
  }
  return {{}, {}, known.pcpu};
}

TotalKey KeyOf(const EventTotal& total) { return {total.domain, total.vcpu, total.pcpu}; }

void SetKey(const TotalKey& key, EventTotal& total) {
  total.domain = key.domain;
  total.vcpu = key.vcpu;
  total.pcpu = key.pcpu;
}

std::optional<size_t> ColumnOf(const std::vector<RatioColumn>& ratios, size_t event) {
  std::optional<size_t> found;
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].ratio.numerator != event) continue;
    if (!found || (ratios[i].is_share && !ratios[*found].is_share)) found = i;
  }
  return found;
}

uint32_t SampleTotals::NumberOf(const TotalKey& key) {
  const uint32_t row = rows_.try_emplace(key, static_cast<uint32_t>(rows_.size())).first->second;
  doubts_.resize(rows_.size() * comparison_.events.size());
  return row;
}

void SampleTotals::Add(const TotalKey& key, size_t event, double part) {
  const uint32_t row = NumberOf(key);
  sums_.Add(row, event, part);
  doubts_[row * comparison_.events.size() + event] += part * (1 - part);
}

EventTotals SampleTotals::Finish(const std::vector<DomainId>& domains) const {
  EventTotals totals;
  totals.ratios = comparison_.ratios;
  totals.cautions = comparison_.cautions;
  for (const ComparedEvent& event : comparison_.events) totals.events.push_back({event.title});
  for (const auto& [key, row] : rows_) {
    const std::optional<DomainId>& domain = key.domain;
    const bool is_wanted =
        !domain || domains.empty() || std::ranges::find(domains, *domain) != domains.end();
    if (is_wanted) AddTotals(key, row, totals);
  }
  ForEachRatio(totals,
               [this](const correlate::EventRatio& ratio, const EventTotal&, EventTotal& total) {
                 correlate::EventPair pair = sums_.PairOf(rows_.at(KeyOf(total)), ratio);
                 pair.complete = comparison_.complete;
                 total.ratio = EstimateRatio(pair, ratio.scale);
               });
  return totals;
}

void SampleTotals::AddTotals(const TotalKey& key, uint32_t row, EventTotals& totals) const {
  for (size_t event = 0; event < comparison_.events.size(); ++event) {
    EventTotal& total = totals.totals.emplace_back();
    SetKey(key, total);
    total.event = event;
    SetEstimate(sums_.Samples(row, event), sums_.AllSamples(event), comparison_.complete,
                doubts_[row * comparison_.events.size() + event],
                static_cast<double>(comparison_.events[event].period), total);
  }
}

absl::StatusOr<std::optional<CountedSamples>> CountedSamples::Open(
    const recording::Recording& recording, std::vector<uint64_t> skipped_bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<recording::EventInfo> events, ReadEvents(recording));
  const std::vector<EventGroup> groups = AllGroups(events);
  if (groups.empty()) return std::nullopt;
  EventComparison comparison = CompareEvents(recording.info(), events, groups);
  std::vector<uint8_t> numbers = EventNumbers(comparison);
  SampleSelection selection{.events = groups.front()};
  selection.beside.assign(groups.begin() + 1, groups.end());
  selection.skipped_bytes = std::move(skipped_bytes);
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                             RecordedSamples::Open(recording, selection, /*processes=*/nullptr));
  return std::optional(CountedSamples{std::move(comparison), std::move(numbers),
                                      std::move(selection), std::move(samples)});
}

}  // namespace xenoscope::profile
