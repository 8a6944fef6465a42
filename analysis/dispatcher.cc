#include "analysis/dispatcher.h"

#include <optional>

namespace xenoscope::analysis {

Dispatcher::Dispatcher(const std::vector<Subscriber*>& subscribers) {
  for (const Changes what : {Changes::kFigures, Changes::kState}) Make(subscribers, what);
}

void Dispatcher::Make(const std::vector<Subscriber*>& subscribers, Changes what) {
  Routes& routes = all_routes_[static_cast<size_t>(what)];
  const auto wants = [what](std::optional<Changes> changes) {
    return changes && (what == Changes::kFigures || *changes == Changes::kState);
  };
  std::array<std::vector<Subscriber*>, trace::kEventCount> by_event;
  for (Subscriber* subscriber : subscribers) {
    Subscriptions wanted;
    subscriber->Subscribe(wanted);
    for (const auto& [event, changes] : wanted.events_) {
      if (wants(changes)) by_event[static_cast<size_t>(event)].push_back(subscriber);
    }
    if (wants(wanted.runs_)) routes.runs.push_back(subscriber);
    if (wants(wanted.exits_)) routes.exits.push_back(subscriber);
    if (wants(wanted.states_)) routes.states.push_back(subscriber);
    if (wants(wanted.losses_)) routes.losses.push_back(subscriber);
  }
  std::array<size_t, trace::kEventCount> begins{};
  for (size_t event = 0; event < trace::kEventCount; ++event) {
    begins[event] = routes.called.size();
    for (Subscriber* subscriber : by_event[event]) routes.called.push_back(subscriber);
    routes.called.push_back(nullptr);
  }
  for (size_t event = 0; event < trace::kEventCount; ++event) {
    routes.by_event[event] = routes.called.data() + begins[event];
  }
}

}  // namespace xenoscope::analysis
