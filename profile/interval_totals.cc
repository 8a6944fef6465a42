#include "profile/interval_totals.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"

namespace xenoscope::profile {

void IntervalTotals::Add(Waiting sample, Tsc end, SampleTotals& sums) {
  const Cycles before = std::min(sample.rest.end, end) - sample.rest.begin;
  if (before > 0) {
    const double part = static_cast<double>(before) / static_cast<double>(sample.whole);
    sums.Add(sample.key, sample.event, part);
    sums.EndSample();
    rows_.insert(sample.key);
  }
  sample.rest.begin = sample.rest.begin + before;
  if (!sample.rest.Empty()) waiting_.push_back(std::move(sample));
}

void IntervalTotals::AddKnownRows(const recording::Recording& recording, SampleTotals& sums) {
  std::erase_if(rows_, [&recording](const TotalKey& key) {
    const recording::DomainInfo* domain =
        key.domain ? recording.info().Domain(*key.domain) : nullptr;
    return domain != nullptr && domain->died;
  });
  for (const TotalKey& key : rows_) sums.AddRow(key);
}

absl::StatusOr<EventTotals> IntervalTotals::Next(const recording::Recording& recording, Tsc end) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::optional<CountedSamples> counted,
                             CountedSamples::Open(recording, read_));
  if (!counted) return EventTotals();
  // Before the recording has its first accounts, samples may have been lost.
  counted->comparison.complete &= !recording.info().streams.empty();
  SampleTotals sums(std::move(counted->comparison));
  AddKnownRows(recording, sums);
  for (Waiting& sample : std::exchange(waiting_, {})) Add(std::move(sample), end, sums);
  while (const recording::Sample* sample = counted->samples.Next()) {
    Waiting fresh;
    fresh.key = KeyOf({sample->vcpu.domain, sample->vcpu.vcpu, {}}, by_);
    fresh.event = counted->numbers[sample->event];
    fresh.rest = {sample->when.begin, std::max(sample->when.end, sample->when.begin + 1)};
    fresh.whole = fresh.rest.Length();
    Add(std::move(fresh), end, sums);
  }
  read_ = counted->samples.Offsets();
  EventTotals totals = sums.Finish(domains_);
  totals.seconds = recording.clock().Seconds(end - begin_);
  begin_ = end;
  return totals;
}

absl::StatusOr<EventTotals> IntervalTotals::Rest(const recording::Recording& recording) {
  const Tsc begin = begin_;
  XENOSCOPE_ASSIGN_OR_RETURN(EventTotals totals,
                             Next(recording, Tsc{std::numeric_limits<uint64_t>::max()}));
  totals.seconds = recording.clock().Seconds(recording.info().stopped - begin);
  return totals;
}

}  // namespace xenoscope::profile
