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
#include "profile/sample_totals.h"
#include "trace/ordered_stream.h"

namespace xenoscope::profile {
namespace {

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
  std::map<std::pair<TotalKey, size_t>, std::vector<const CountedPart*>> rows;
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
  XENOSCOPE_ASSIGN_OR_RETURN(std::optional<CountedSamples> counted,
                             CountedSamples::Open(recording, {}));
  if (!counted) return EventTotals();
  SampleTotals sums(std::move(counted->comparison));
  while (const recording::Sample* sample = counted->samples.Next()) {
    const TotalKey key = KeyOf({sample->vcpu.domain, sample->vcpu.vcpu, {}}, by);
    sums.Add(key, counted->numbers[sample->event], 1);
    sums.EndSample();
  }
  return TotalsOf(recording, sums, domains);
}

absl::StatusOr<EventTotals> EstimateTotalsOfPcpus(const TraceInput& input) {
  const recording::Recording& recording = *input.recording;
  XENOSCOPE_ASSIGN_OR_RETURN(std::optional<CountedSamples> counted,
                             CountedSamples::Open(recording, {}));
  if (!counted) return EventTotals();
  XENOSCOPE_ASSIGN_OR_RETURN(const BracketSummary brackets,
                             SummariseBrackets(recording, counted->selection));
  const recording::RecordingInfo& info = recording.info();
  correlate::PlacingOptions options =
      PlacingOptionsFor(input.dialect, {info.started, info.stopped}, brackets.longest, {});
  for (const EventGroup& group : counted->selection.beside) {
    for (const uint16_t event : group) options.beside.set(event);
  }
  options.uniform_in_time = false;  // rows are counts of samples, of any event
  SampleTotals sums(std::move(counted->comparison));
  PcpuTotals by_pcpu(sums, counted->numbers);
  correlate::Placer placer(options, counted->samples, by_pcpu);
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
