#include "analysis/sweep.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/facts.h"
#include "analysis/lane.h"
#include "analysis/limits.h"
#include "base/error.h"
#include "correlate/clocks.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

using trace::Item;
using trace::ItemKind;

// Ends the lane.
void Finish(Lane& lane, const std::vector<std::unique_ptr<Subscriber>>& subscribers) {
  lane.Finish();
  for (const auto& subscriber : subscribers) subscriber->Finish(lane.timeline().now());
}

}  // namespace

absl::StatusOr<Facts> Sweep(const trace::TraceFile& file, const Known& known,
                            const std::vector<std::unique_ptr<Subscriber>>& subscribers) {
  Facts facts = EstablishFacts(file, known);
  Lane lane(SubscribersOf(subscribers));
  trace::OrderedStream stream = file.Stream();
  if (!file.index().pcpus.empty()) facts.range.begin = stream.next_tsc();
  const trace::Wanted wanted = lane.WantedEvents();
  stream.ForEach<true>(stream.kEnd, wanted, lane);
  Finish(lane, subscribers);
  facts.range.end = lane.timeline().now();
  XENOSCOPE_RETURN_IF_ERROR(
      CheckLimits(file, lane.timeline().faults(), lane.timeline().vcpus().size(), facts.range));
  facts.vcpus = lane.timeline().vcpus().size();
  if (lane.timeline().faults().runstate_mismatches > 0) {
    facts.skews = correlate::CompareClocks(file, facts.range);
  }
  return facts;
}

absl::Status SweepIntervals(const trace::TraceFile& file,
                            const std::vector<std::unique_ptr<Subscriber>>& subscribers,
                            Cycles length, const OnInterval& on_interval) {
  Lane lane(SubscribersOf(subscribers));
  std::optional<TscRange> interval;
  uint64_t intervals = 0;
  trace::OrderedStream stream = file.Stream();
  while (const Item* item = stream.Next()) {
    if (!interval && item->kind == ItemKind::kPcpuBegin) {
      interval = TscRange{item->record.tsc, item->record.tsc + length};
    }
    while (interval && item->record.tsc >= interval->end) [[unlikely]] {
        if (++intervals >= kMostIntervals) {
          return InvalidError("{}: more than {} intervals; choose a longer one", file.name(),
                              kMostIntervals);
        }
        XENOSCOPE_RETURN_IF_ERROR(on_interval(*interval, lane.timeline()));
        interval = TscRange{interval->end, interval->end + length};
      }
    lane.Take(*item);
  }
  Finish(lane, subscribers);
  if (!interval) return absl::OkStatus();
  // Half-open: one cycle more than the last record's time.
  return on_interval({interval->begin, std::min(interval->end, lane.timeline().now() + 1)},
                     lane.timeline());
}

}  // namespace xenoscope::analysis
