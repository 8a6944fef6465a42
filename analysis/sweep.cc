#include "analysis/sweep.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/evidence.h"
#include "analysis/lane.h"
#include "analysis/limits.h"
#include "base/error.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

using trace::Item;
using trace::ItemKind;

std::vector<Analysis*> Pointers(const std::vector<std::unique_ptr<Analysis>>& analyses) {
  std::vector<Analysis*> pointers;
  pointers.reserve(analyses.size());
  for (const auto& analysis : analyses) pointers.push_back(analysis.get());
  return pointers;
}

// Ends the lane.
void Finish(Lane& lane, const std::vector<std::unique_ptr<Analysis>>& analyses) {
  lane.Finish();
  for (const auto& analysis : analyses) analysis->Finish(lane.timeline().now());
}

}  // namespace

absl::StatusOr<Facts> Sweep(const trace::TraceFile& file, const Known& known,
                            const std::vector<std::unique_ptr<Analysis>>& analyses) {
  Lane lane(Pointers(analyses));
  Evidence evidence;
  std::optional<Tsc> first;
  trace::OrderedStream stream = file.Stream();
  for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
    evidence.Observe(batch);
    for (const Item& item : batch) {
      if (item.kind == ItemKind::kPcpuBegin && !first) first = item.record.tsc;
      lane.Take(item);
    }
  }
  Finish(lane, analyses);
  const Tsc last = lane.timeline().now();
  const TscRange range{first.value_or(last), last};
  XENOSCOPE_RETURN_IF_ERROR(CheckLimits(file, lane.timeline(), range));
  Facts facts = evidence.Conclude(known, range);
  facts.vcpus = lane.timeline().vcpus().size();
  return facts;
}

absl::Status SweepIntervals(const trace::TraceFile& file,
                            const std::vector<std::unique_ptr<Analysis>>& analyses, Cycles length,
                            const OnInterval& on_interval) {
  Lane lane(Pointers(analyses));
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
  Finish(lane, analyses);
  if (!interval) return absl::OkStatus();
  // Half-open: one cycle more than the last record's time.
  return on_interval({interval->begin, std::min(interval->end, lane.timeline().now() + 1)},
                     lane.timeline());
}

}  // namespace xenoscope::analysis
