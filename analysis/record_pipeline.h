// A set of subscribers with a timeline of their own: what one thread does with its part of the
// stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/dispatcher.h"
#include "correlate/pcpu_groups.h"
#include "correlate/stream_late_records.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"

namespace xenoscope::analysis {

// Returns the subscribers that a container of std::unique_ptr holds.
template <typename Owners>
std::vector<Subscriber*> SubscribersOf(const Owners& owners) {
  std::vector<Subscriber*> subscribers;
  subscribers.reserve(owners.size());
  for (const auto& owner : owners) subscribers.push_back(owner.get());
  return subscribers;
}

class RecordPipeline {
 public:
  // The subscribers, and the shared numbers of vCPUs if there are any, must outlive the pipeline.
  // All records count, unless StartWarmUp is called first.
  explicit RecordPipeline(const std::vector<Subscriber*>& subscribers,
                          correlate::VcpuIndex* numbers = nullptr,
                          uint64_t window_bytes = correlate::kGroupWindowBytes)
      : dispatcher_(subscribers),
        timeline_(dispatcher_, numbers),
        order_(dispatcher_.order()),
        groups_(timeline_, window_bytes) {}

  // Begins the warm-up: records only change the state.
  void StartWarmUp() { dispatcher_.Restrict(UpdateScope::kState); }
  // Ends the warm-up: records count from here on.
  void StartCounting() {
    dispatcher_.Restrict(UpdateScope::kMetrics);
    timeline_.StartCounting();
  }
  // Returns the events whose records have an effect here now, with their routes; other records need
  // not be taken.
  [[nodiscard]] trace::EventTargets<Dispatcher::EventRoute> SubscribedEvents() const;

  // Gives the next records and items of the stream, up to the time `through`, to the handler, which
  // gives them on to this pipeline: in the order that the subscribers need.
  template <bool kCount, typename Handler>
  void Pass(trace::OrderedStream& stream, Tsc through, Handler& handler);

  // Lets records come in this order, where it is stricter than the one that the subscribers need.
  void Require(trace::RecordOrder order) { order_ = std::min(order_, order); }

  // Takes the next item of the stream, of either sort. A record without a subscriber costs a few
  // instructions.
  void Take(const trace::Item& item) {
    if (item.kind != trace::ItemKind::kRecord) [[unlikely]] {
      TakeNonRecord(item);
      return;
    }
    TakeRecord(item.record);
  }
  void TakeNonRecord(const trace::Item& item);
  void TakeRecord(const trace::Record& record) {
    TakeRecord(record, dispatcher_.RouteOf(record.event));
  }
  // `route` is what SubscribedEvents() returned for the event.
  void TakeRecord(const trace::Record& record, const Dispatcher::EventRoute& route) {
    if (!route.Empty()) route.Take({record, timeline_.Current(record.pcpu)});
    timeline_.TakeCrossingOrder(record);
  }
  void Finish() { timeline_.Finish(); }

  [[nodiscard]] const correlate::Timeline& timeline() const { return timeline_; }
  correlate::Timeline& timeline() { return timeline_; }

 private:
  Dispatcher dispatcher_;
  correlate::Timeline timeline_;
  trace::RecordOrder order_;
  correlate::PcpuGroups groups_;
};

template <bool kCount, typename Handler>
void RecordPipeline::Pass(trace::OrderedStream& stream, Tsc through, Handler& handler) {
  using trace::RecordOrder;
  const auto events = SubscribedEvents();
  if (order_ == RecordOrder::kTime) {
    stream.ForEach<kCount, RecordOrder::kTime>(through, events, handler);
    return;
  }
  correlate::StreamLateRecords late(stream, events, *this);
  timeline_.SetLateRecords(&late);
  if (order_ == RecordOrder::kCrossing) {
    stream.ForEach<kCount, RecordOrder::kCrossing>(through, events, handler);
  } else {
    groups_.ForEach<kCount>(stream, through, events, handler);
  }
  timeline_.SetLateRecords(nullptr);
}

}  // namespace xenoscope::analysis
