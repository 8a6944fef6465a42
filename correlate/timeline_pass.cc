#include "correlate/timeline_pass.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "correlate/pcpu_groups.h"
#include "correlate/stream_late_records.h"
#include "trace/cursor.h"
#include "trace/record.h"

namespace xenoscope::correlate {
namespace {

// Gives records to a timeline.
struct Taker {
  Timeline& timeline;
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) const {
    timeline.TakeCrossingOrder(record);
  }
  void TakeNonRecord(const trace::Item& item) const { timeline.TakeNonRecord(item); }
};

// Gives records to those observers who want them, and to the timeline.
class ObserverHandler {
 public:
  // Who wants the records of an event.
  struct Wanted {
    Timeline::RecordHandler* timeline = nullptr;  // null: it does not
    uint32_t observers = 0;                       // correlate::WhoWants
  };

  ObserverHandler(std::span<TraceObserver* const> observers, Timeline& timeline)
      : observers_(observers), timeline_(timeline) {
    for (size_t i = 0; i < trace::kEventCount; ++i) {
      const auto event = static_cast<trace::Event>(i);
      Wanted& wanted = wanted_[i];
      wanted.timeline = timeline.HandlerOf(event);
      wanted.observers = WhoWants(event, observers);
      if (wanted.timeline != nullptr || wanted.observers != 0) events_[i] = &wanted;
    }
  }
  ObserverHandler(const ObserverHandler&) = delete;
  ObserverHandler& operator=(const ObserverHandler&) = delete;

  [[nodiscard]] const trace::EventTargets<Wanted>& events() const { return events_; }

  void TakeRecord(const trace::Record& record, const Wanted& wanted) const {
    ShowRecord(record, timeline_, wanted.observers, observers_);
    if (wanted.timeline != nullptr) timeline_.TakeCrossingOrder(record, *wanted.timeline);
  }
  void TakeNonRecord(const trace::Item& item) const {
    for (TraceObserver* each : observers_) each->OnNonRecord(item);
    timeline_.TakeNonRecord(item);
  }

 private:
  std::span<TraceObserver* const> observers_;
  Timeline& timeline_;
  std::array<Wanted, trace::kEventCount> wanted_{};
  trace::EventTargets<Wanted> events_{};  // pointers into wanted_
};

// How far a pass goes on behind its end before it looks whether it has all, in cycles (about a
// millisecond).
constexpr Cycles kBetweenLooks = Cycles{1} << 22;

}  // namespace

void PassToTimeline(trace::OrderedStream& stream, Timeline& timeline) {
  const auto events = HandledEvents(timeline, trace::kAnyTarget);
  Taker taker{timeline};
  StreamLateRecords late(stream, events, taker);
  timeline.SetLateRecords(&late);
  stream.ForEach<false, trace::RecordOrder::kCrossing>(trace::OrderedStream::kEnd, events, taker);
  timeline.SetLateRecords(nullptr);
}

void ObserveTrace(const trace::TraceFile& trace, std::span<TraceObserver* const> observers,
                  Tsc end) {
  TimelineFanOut fan_out({observers.begin(), observers.end()});
  Timeline timeline(*fan_out.get());
  trace::OrderedStream stream = trace.Stream();
  ObserverHandler handler(observers, timeline);
  StreamLateRecords late(stream, handler.events(), handler);
  timeline.SetLateRecords(&late);
  PcpuGroups groups(timeline);
  const auto has_all = [&] {
    return timeline.now() >= end &&
           (timeline.now() - end >= kMostAfterEnd || !timeline.HasOpenBefore(end));
  };
  for (Tsc through{end.value - 1}; stream.next_tsc() != trace::OrderedStream::kEnd && !has_all();
       through = stream.next_tsc() + kBetweenLooks) {
    groups.ForEach<false>(stream, through, handler.events(), handler);
  }
  for (TraceObserver* each : observers) each->OnTraceEnd(timeline);
  timeline.Finish();
  for (TraceObserver* each : observers) each->OnTimelineEnd();
}

}  // namespace xenoscope::correlate
