#include "correlate/timeline_pass.h"

#include <cstddef>

#include "correlate/stream_late_records.h"
#include "trace/cursor.h"
#include "trace/record.h"

namespace xenoscope::correlate {
namespace {

using trace::RecordOrder;

// Takes records in the order `kOrder`.
template <RecordOrder kOrder>
struct Taker {
  Timeline& timeline;
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) const {
    if constexpr (kOrder == RecordOrder::kTime) {
      timeline.TakeRecord(record);
    } else {
      timeline.TakeCrossingOrder(record);
    }
  }
  void TakeNonRecord(const trace::Item& item) const { timeline.TakeNonRecord(item); }
};

}  // namespace

void PassToTimeline(trace::OrderedStream& stream, Tsc end, Timeline& timeline) {
  trace::EventTargets<trace::AnyTarget> events{};
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    if (timeline.Handles(static_cast<trace::Event>(i))) events[i] = &trace::kAnyTarget;
  }
  Taker<RecordOrder::kCrossing> taker{timeline};
  StreamLateRecords late(stream, events, taker);
  timeline.SetLateRecords(&late);
  if (end > Tsc{0})
    stream.ForEach<false, RecordOrder::kCrossing>(Tsc{end.value - 1}, events, taker);
  timeline.SetLateRecords(nullptr);
  Taker<RecordOrder::kTime> last{timeline};
  stream.ForEach<false, RecordOrder::kTime>(stream.next_tsc(), trace::kAllEvents, last);
}

}  // namespace xenoscope::correlate
