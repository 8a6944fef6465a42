#include "analysis/sweep.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analysis/dispatcher.h"
#include "analysis/evidence.h"
#include "base/error.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

using trace::Item;
using trace::ItemKind;

// The stream, the timeline and the analyses, an item at a time.
class Pass {
 public:
  explicit Pass(const std::vector<std::unique_ptr<Analysis>>& analyses)
      : analyses_(analyses), dispatcher_(analyses), timeline_(dispatcher_) {}

  void Take(const Item& item) {
    if (item.kind == ItemKind::kRecord) [[likely]] {
      if (dispatcher_.Wants(item.record.event)) {
        dispatcher_.Record({item.record, timeline_.Current(item.record.pcpu)});
      }
    } else if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kLost) {
      dispatcher_.Loss(item);
    }
    timeline_.Take(item);
  }
  void Finish() {
    timeline_.Finish();
    for (const auto& analysis : analyses_) analysis->Finish(timeline_.now());
  }
  const correlate::Timeline& timeline() const { return timeline_; }

 private:
  const std::vector<std::unique_ptr<Analysis>>& analyses_;
  Dispatcher dispatcher_;
  correlate::Timeline timeline_;
};

}  // namespace

absl::StatusOr<Facts> Sweep(const trace::TraceFile& file, const Known& known,
                            const std::vector<std::unique_ptr<Analysis>>& analyses) {
  Pass pass(analyses);
  Evidence evidence;
  std::optional<Tsc> first;
  trace::OrderedStream stream = file.Stream();
  for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
    evidence.Observe(batch);
    for (const Item& item : batch) {
      if (item.kind == ItemKind::kPcpuBegin && !first) first = item.record.tsc;
      pass.Take(item);
    }
  }
  pass.Finish();
  const Tsc last = pass.timeline().now();
  return evidence.Conclude(known, {first.value_or(last), last});
}

absl::Status SweepIntervals(const trace::TraceFile& file,
                            const std::vector<std::unique_ptr<Analysis>>& analyses, Cycles length,
                            const OnInterval& on_interval) {
  Pass pass(analyses);
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
        XENOSCOPE_RETURN_IF_ERROR(on_interval(*interval, pass.timeline()));
        interval = TscRange{interval->end, interval->end + length};
      }
    pass.Take(*item);
  }
  pass.Finish();
  if (!interval) return absl::OkStatus();
  // Half-open: one cycle more than the last record's time.
  return on_interval({interval->begin, std::min(interval->end, pass.timeline().now() + 1)},
                     pass.timeline());
}

}  // namespace xenoscope::analysis
