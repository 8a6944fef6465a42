#include "analysis/lane.h"

#include <cstddef>

namespace xenoscope::analysis {

using trace::Event;
using trace::ItemKind;

trace::EventSet Lane::WantedEvents() const {
  trace::EventSet events{};
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    events[i] = *dispatcher_.Called(event) != nullptr || timeline_.Concerns(event);
  }
  return events;
}

void Lane::TakeRare(const trace::Item& item) {
  if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kLost) dispatcher_.Loss(item);
  timeline_.TakeRare(item);
}

}  // namespace xenoscope::analysis
