#include "analysis/lane.h"

#include <cstddef>

namespace xenoscope::analysis {

using trace::Event;
using trace::ItemKind;

trace::Wanted Lane::WantedEvents() const {
  trace::Wanted events{};
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    const Dispatcher::Row& row = dispatcher_.RowOf(event);
    if (!row.Empty() || timeline_.Concerns(event)) events[i] = &row;
  }
  return events;
}

void Lane::TakeRare(const trace::Item& item) {
  if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kLost) dispatcher_.Loss(item);
  timeline_.TakeRare(item);
}

}  // namespace xenoscope::analysis
