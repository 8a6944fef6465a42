#include "analysis/dispatcher.h"

#include <algorithm>
#include <optional>

namespace xenoscope::analysis {

Dispatcher::Dispatcher(const std::vector<Subscriber*>& subscribers) {
  for (const UpdateScope what : {UpdateScope::kMetrics, UpdateScope::kState})
    Make(subscribers, what);
}

void Dispatcher::Make(const std::vector<Subscriber*>& subscribers, UpdateScope what) {
  Routes& routes = all_routes_[static_cast<size_t>(what)];
  const auto wants = [what](std::optional<UpdateScope> scope) {
    return scope && (what == UpdateScope::kMetrics || *scope == UpdateScope::kState);
  };
  std::array<std::vector<EventRoute::Call>, trace::kEventCount> by_event;
  for (Subscriber* subscriber : subscribers) {
    Subscriptions wanted;
    subscriber->Subscribe(wanted);
    order_ = std::min(order_, subscriber->order());
    for (const auto& [event, scope, take] : wanted.events_) {
      if (!wants(scope)) continue;
      by_event[static_cast<size_t>(event)].push_back(
          {subscriber, take != nullptr ? take : subscriber->DirectCallback()});
    }
    if (wants(wanted.runs_)) routes.runs.push_back(subscriber);
    if (wants(wanted.segments_)) routes.segments.push_back(subscriber);
    if (wants(wanted.exits_)) routes.exits.push_back(subscriber);
    if (wants(wanted.states_)) routes.states.push_back(subscriber);
    if (wants(wanted.entries_)) routes.entries.push_back(subscriber);
    if (wants(wanted.losses_)) routes.losses.push_back(subscriber);
  }
  std::array<size_t, trace::kEventCount> begins{};
  for (size_t event = 0; event < trace::kEventCount; ++event) {
    begins[event] = routes.calls.size();
    if (by_event[event].size() < 2) continue;
    routes.calls.insert(routes.calls.end(), by_event[event].begin() + 1, by_event[event].end());
    routes.calls.emplace_back();
  }
  for (size_t event = 0; event < trace::kEventCount; ++event) {
    if (by_event[event].empty()) continue;
    EventRoute& route = routes.by_event[event];
    route.first_ = by_event[event][0];
    if (by_event[event].size() > 1) route.others_ = routes.calls.data() + begins[event];
  }
}

}  // namespace xenoscope::analysis
