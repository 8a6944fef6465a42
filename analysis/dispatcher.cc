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
  std::array<std::vector<Row::Call>, trace::kEventCount> by_event;
  for (Subscriber* subscriber : subscribers) {
    Subscriptions wanted;
    subscriber->Subscribe(wanted);
    for (const auto& [event, changes, take] : wanted.events_) {
      if (!wants(changes)) continue;
      by_event[static_cast<size_t>(event)].push_back(
          {subscriber, take != nullptr ? take : subscriber->HowToTake()});
    }
    if (wants(wanted.runs_)) routes.runs.push_back(subscriber);
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
    Row& row = routes.by_event[event];
    row.first_ = by_event[event][0];
    if (by_event[event].size() > 1) row.others_ = routes.calls.data() + begins[event];
  }
}

}  // namespace xenoscope::analysis
