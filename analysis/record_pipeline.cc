#include "analysis/record_pipeline.h"

#include <cstddef>

namespace xenoscope::analysis {

using trace::Event;
using trace::ItemKind;

trace::EventTargets<Dispatcher::EventRoute> RecordPipeline::SubscribedEvents() const {
  trace::EventTargets<Dispatcher::EventRoute> events{};
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    const Dispatcher::EventRoute& route = dispatcher_.RouteOf(event);
    if (!route.Empty() || timeline_.Handles(event)) events[i] = &route;
  }
  return events;
}

void RecordPipeline::TakeNonRecord(const trace::Item& item) {
  if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kLost) dispatcher_.Loss(item);
  timeline_.TakeNonRecord(item);
}

}  // namespace xenoscope::analysis
