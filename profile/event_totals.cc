#include "profile/event_totals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "correlate/estimate.h"
#include "correlate/placing/placer.h"
#include "profile/pipeline_options.h"
#include "profile/recorded_samples.h"
#include "trace/ordered_stream.h"

namespace xenoscope::profile {
namespace {

// What a row is of.
struct RowKey {
  std::optional<DomainId> domain;
  std::optional<VcpuId> vcpu;
  std::optional<PcpuId> pcpu;
  auto operator<=>(const RowKey&) const = default;
};

// Returns the key by `by` of what is known.
RowKey KeyOf(RowKey known, TotalsBy by) {
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

RowKey KeyOf(const EventTotal& total) { return {total.domain, total.vcpu, total.pcpu}; }

void SetKey(const RowKey& key, EventTotal& total) {
  total.domain = key.domain;
  total.vcpu = key.vcpu;
  total.pcpu = key.pcpu;
}

// Returns the total of one row and event.
EventTotal SumOf(const std::vector<const CountedPart*>& parts) {
  EventTotal total;
  total.kind = TotalKind::kExact;
  double enabled = 0;
  double running = 0;
  bool counted = false;
  for (const CountedPart* part : parts) {
    counted = counted || part->counted;
    enabled += part->enabled_ns;
    running += part->running_ns;
    const bool whole = part->running_ns >= part->enabled_ns;
    if (!whole && part->running_ns <= 0) continue;
    if (!whole) total.kind = TotalKind::kScaled;
    total.count += whole ? part->count : part->count * part->enabled_ns / part->running_ns;
  }
  if (!counted || (running <= 0 && enabled > 0)) total.kind = TotalKind::kNotCounted;
  if (enabled > 0) total.measured = std::min(1.0, running / enabled);
  return total;
}

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

// Returns the 97.5 % point of Student's t with so many degrees of freedom, at least 1: values of
// the usual table, beyond them Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5).
double Student95(size_t freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  if (freedom <= kTable.size()) return kTable.at(freedom - 1);
  const double z = correlate::kNormal95;
  const auto v = static_cast<double>(freedom);
  const double cubic = (std::pow(z, 3) + z) / 4;
  const double quintic = (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / 96;
  return z + cubic / v + quintic / (v * v);
}

// Returns the total of the same row and event; null if there is none.
const EventTotal* FindRow(const std::vector<EventTotal>& totals, const EventTotal& like) {
  const auto found = std::ranges::find_if(totals, [&](const EventTotal& each) {
    return KeyOf(each) == KeyOf(like) && each.event == like.event;
  });
  return found == totals.end() ? nullptr : &*found;
}

void Sort(std::vector<EventTotal>& totals) {
  std::ranges::stable_sort(
      totals, {}, [](const EventTotal& total) { return std::pair(KeyOf(total), total.event); });
}

// Adds the rows of a run that others do not have: of a domain that came later.
void AddMissing(const std::vector<EventTotal>& run, std::vector<EventTotal>& totals) {
  const size_t before = totals.size();
  for (const EventTotal& total : run) {
    if (FindRow(totals, total) == nullptr) totals.push_back(total);
  }
  if (totals.size() > before) Sort(totals);
}

// Returns the column of the event's ratio: a part of another event, else the first ratio.
std::optional<size_t> ColumnOf(const std::vector<RatioColumn>& ratios, size_t event) {
  std::optional<size_t> found;
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i].ratio.numerator != event) continue;
    if (!found || (ratios[i].is_share && !ratios[*found].is_share)) found = i;
  }
  return found;
}

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

  // Adds a part in (0, 1] of the sample at hand, of an event of the comparison.
  void Add(const RowKey& key, size_t event, double part) {
    const uint32_t row = rows_.try_emplace(key, static_cast<uint32_t>(rows_.size())).first->second;
    sums_.Add(row, event, part);
    doubts_.resize(rows_.size() * comparison_.events.size());
    doubts_[row * comparison_.events.size() + event] += part * (1 - part);
  }
  void EndSample() { sums_.EndCluster(); }

  // Returns the totals of rows of these domains; of all, if there are none.
  EventTotals Finish(const std::vector<DomainId>& domains) const {
    EventTotals totals;
    totals.ratios = comparison_.ratios;
    totals.cautions = comparison_.cautions;
    for (const ComparedEvent& event : comparison_.events) totals.events.push_back({event.title});
    for (const auto& [key, row] : rows_) {
      const std::optional<DomainId>& domain = key.domain;
      const bool is_wanted =
          !domain || domains.empty() || std::ranges::find(domains, *domain) != domains.end();
      if (is_wanted) AddRow(key, row, totals);
    }
    ForEachRatio(totals,
                 [this](const correlate::EventRatio& ratio, const EventTotal&, EventTotal& total) {
                   correlate::EventPair pair = sums_.PairOf(rows_.at(KeyOf(total)), ratio);
                   pair.complete = comparison_.complete;
                   total.ratio = EstimateRatio(pair, ratio.scale);
                 });
    return totals;
  }

 private:
  void AddRow(const RowKey& key, uint32_t row, EventTotals& totals) const {
    for (size_t event = 0; event < comparison_.events.size(); ++event) {
      EventTotal& total = totals.totals.emplace_back();
      SetKey(key, total);
      total.event = event;
      SetEstimate(sums_.Samples(row, event), sums_.AllSamples(event), comparison_.complete,
                  doubts_[row * comparison_.events.size() + event],
                  static_cast<double>(comparison_.events[event].period), total);
    }
  }

  EventComparison comparison_;
  std::map<RowKey, uint32_t> rows_;
  correlate::EventSums sums_;
  std::vector<double> doubts_;  // by row and event: the variance of the number of its samples
};

// Adds samples to the pCPUs of their places.
class PcpuTotals final : public correlate::PlacingObserver {
 public:
  PcpuTotals(SampleTotals& sums, std::vector<uint8_t> numbers)
      : sums_(sums), numbers_(std::move(numbers)) {}

  void OnPlaced(const correlate::PlacedSample& placed) override {
    parts_.clear();
    for (const correlate::Place& place : placed.places) {
      const bool known = correlate::IsTraced(place.context.kind);
      const std::optional<PcpuId> pcpu = known ? std::optional(place.pcpu) : std::nullopt;
      const auto found = std::ranges::find(parts_, pcpu, &Part::first);
      if (found == parts_.end()) {
        parts_.emplace_back(pcpu, place.weight);
      } else {
        found->second += place.weight;
      }
    }
    for (const auto& [pcpu, part] : parts_) Add(*placed.sample, pcpu, std::min(part, 1.0));
    sums_.EndSample();
  }
  void OnUnplaced(const recording::Sample& sample, correlate::UnplacedReason /*why*/) override {
    Add(sample, sample.pcpu, 1);
    sums_.EndSample();
  }
  void OnTraced(VcpuRef /*vcpu*/, correlate::Context /*context*/,
                correlate::ContextTime /*time*/) override {}

 private:
  using Part = std::pair<std::optional<PcpuId>, double>;

  void Add(const recording::Sample& sample, std::optional<PcpuId> pcpu, double part) {
    if (part > 0) sums_.Add({{}, {}, pcpu}, numbers_[sample.event], part);
  }

  SampleTotals& sums_;
  std::vector<uint8_t> numbers_;
  std::vector<Part> parts_;  // of the sample at hand
};

// Returns the groups of all events that count something.
std::vector<EventGroup> AllGroups(const std::vector<recording::EventInfo>& events) {
  std::vector<EventGroup> groups;
  for (size_t i = 0; i < events.size(); ++i) {
    const EventGroup group = GroupOf(events, static_cast<uint16_t>(i));
    if (group.front() == i && !events[i].waiting) groups.push_back(group);
  }
  return groups;
}

// The samples of a recording's events, and how they are compared.
struct Estimation {
  EventComparison comparison;
  std::vector<uint8_t> numbers;  // EventNumbers
  SampleSelection selection;
  RecordedSamples samples;

  // Nothing: the recording's events count nothing.
  static absl::StatusOr<std::optional<Estimation>> Begin(const recording::Recording& recording) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<recording::EventInfo> events,
                               ReadEvents(recording));
    const std::vector<EventGroup> groups = AllGroups(events);
    if (groups.empty()) return std::nullopt;
    EventComparison comparison = CompareEvents(recording.info(), events, groups);
    std::vector<uint8_t> numbers = EventNumbers(comparison);
    SampleSelection selection{.events = groups.front()};
    selection.beside.assign(groups.begin() + 1, groups.end());
    XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                               RecordedSamples::Open(recording, selection, /*processes=*/nullptr));
    return std::optional(Estimation{std::move(comparison), std::move(numbers), std::move(selection),
                                    std::move(samples)});
  }
};

// Returns the totals of these domains, with the length of the recording.
EventTotals TotalsOf(const recording::Recording& recording, const SampleTotals& sums,
                     const std::vector<DomainId>& domains) {
  EventTotals totals = sums.Finish(domains);
  const recording::RecordingInfo& info = recording.info();
  if (info.started < info.stopped)
    totals.seconds = recording.clock().Seconds(info.stopped - info.started);
  return totals;
}

}  // namespace

const char* ToString(TotalKind kind) {
  switch (kind) {
    case TotalKind::kExact:
      return "exact";
    case TotalKind::kScaled:
      return "scaled";
    case TotalKind::kEstimated:
      return "estimated";
    case TotalKind::kNotCounted:
      break;
  }
  return "not counted";
}

void AddCounted(const std::vector<CountedPart>& parts, TotalsBy by, EventTotals& totals) {
  std::map<std::pair<RowKey, size_t>, std::vector<const CountedPart*>> rows;
  for (const CountedPart& part : parts) {
    rows[{KeyOf({part.domain, part.vcpu, part.pcpu}, by), part.event}].push_back(&part);
  }
  for (const auto& [key, of_row] : rows) {
    EventTotal& total = totals.totals.emplace_back(SumOf(of_row));
    SetKey(key.first, total);
    total.event = key.second;
  }
}

absl::StatusOr<EventTotals> EstimateTotals(const recording::Recording& recording, TotalsBy by,
                                           const std::vector<DomainId>& domains) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::optional<Estimation> estimation, Estimation::Begin(recording));
  if (!estimation) return EventTotals();
  SampleTotals sums(std::move(estimation->comparison));
  while (const recording::Sample* sample = estimation->samples.Next()) {
    const RowKey key = KeyOf({sample->vcpu.domain, sample->vcpu.vcpu, {}}, by);
    sums.Add(key, estimation->numbers[sample->event], 1);
    sums.EndSample();
  }
  return TotalsOf(recording, sums, domains);
}

absl::StatusOr<EventTotals> EstimateTotalsOfPcpus(const TraceInput& input) {
  const recording::Recording& recording = *input.recording;
  XENOSCOPE_ASSIGN_OR_RETURN(std::optional<Estimation> estimation, Estimation::Begin(recording));
  if (!estimation) return EventTotals();
  XENOSCOPE_ASSIGN_OR_RETURN(const BracketSummary brackets,
                             SummariseBrackets(recording, estimation->selection));
  const recording::RecordingInfo& info = recording.info();
  correlate::PlacingOptions options =
      PlacingOptionsFor(input.dialect, {info.started, info.stopped}, brackets.longest, {}, {});
  for (const EventGroup& group : estimation->selection.beside) {
    for (const uint16_t event : group) options.beside.set(event);
  }
  options.uniform_in_time = false;  // rows are counts of samples, of any event
  SampleTotals sums(std::move(estimation->comparison));
  PcpuTotals by_pcpu(sums, estimation->numbers);
  correlate::Placer placer(options, estimation->samples, by_pcpu);
  trace::OrderedStream stream = input.trace.Stream();
  while (const trace::Item* item = stream.Next()) placer.Take(*item);
  XENOSCOPE_RETURN_IF_ERROR(placer.Finish());
  return TotalsOf(recording, sums, {});
}

void Append(EventTotals other, EventTotals& totals) {
  const size_t events = totals.events.size();
  const size_t ratios = totals.ratios.size();
  for (EventTotal& total : other.totals) {
    total.event += events;
    if (total.ratio_column) *total.ratio_column += ratios;
    totals.totals.push_back(total);
  }
  for (TotalEvent& event : other.events) {
    if (event.seconds == 0) event.seconds = other.seconds;
    totals.events.push_back(std::move(event));
  }
  std::ranges::move(other.ratios, std::back_inserter(totals.ratios));
  std::ranges::move(other.cautions, std::back_inserter(totals.cautions));
  Sort(totals.totals);
}

EventTotals MeanOfRuns(const std::vector<EventTotals>& runs) {
  EventTotals mean = runs.front();
  const auto n = static_cast<double>(runs.size());
  mean.seconds = 0;
  for (const EventTotals& run : runs) mean.seconds += run.seconds / n;
  if (runs.size() == 1) return mean;
  for (const EventTotals& run : runs) AddMissing(run.totals, mean.totals);
  for (EventTotal& total : mean.totals) {
    std::vector<double> counts;
    for (const EventTotals& run : runs) {
      const EventTotal* const of_run = FindRow(run.totals, total);
      counts.push_back(of_run == nullptr ? 0 : of_run->count);
      if (of_run == nullptr) continue;
      total.kind = std::max(total.kind, of_run->kind);
      total.measured = std::min(total.measured, of_run->measured);
    }
    total.count = 0;
    for (const double count : counts) total.count += count / n;
    double squares = 0;
    for (const double count : counts) squares += (count - total.count) * (count - total.count);
    const double error = Student95(runs.size() - 1) * std::sqrt(squares / (n - 1) / n);
    total.has_interval = total.kind != TotalKind::kNotCounted;
    total.low = std::max(0.0, total.count - error);
    total.high = total.count + error;
  }
  return mean;
}

void SetRatios(const EventComparison& compared, EventTotals& totals) {
  totals.ratios = compared.ratios;
  ForEachRatio(totals,
               [](const correlate::EventRatio& ratio, const EventTotal& other, EventTotal& total) {
                 if (other.count <= 0) return total.ratio_column.reset();
                 const double value = ratio.scale * total.count / other.count;
                 total.ratio = {value, value, value};
               });
}

}  // namespace xenoscope::profile
