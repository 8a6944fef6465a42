// Who is called for what: records by event, intervals of the timeline by kind.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "analysis/analysis.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/events.h"

namespace xenoscope::analysis {

class Dispatcher final : public correlate::TimelineObserver {
 public:
  // The subscribers must outlive the dispatcher. Everything is dispatched, until Restrict().
  explicit Dispatcher(const std::vector<Subscriber*>& subscribers);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Dispatches from here on everything (kFigures), or only what changes some state (kState).
  void Restrict(Changes to) { routes_ = &all_routes_[static_cast<size_t>(to)]; }

  // The subscribers to call for the event, up to a null.
  Subscriber* const* Called(trace::Event event) const {
    return routes_->by_event[static_cast<size_t>(event)];
  }
  void Loss(const trace::Item& item) const {
    for (Subscriber* subscriber : routes_->losses) subscriber->OnLoss(item);
  }

  // The summary's analyses look at records and whole intervals.
  bool WantsSegments() const override { return false; }
  bool WantsMarks() const override { return false; }
  void OnRun(const correlate::RunInterval& interval) override {
    for (Subscriber* subscriber : routes_->runs) subscriber->OnRun(interval);
  }
  void OnExit(const correlate::ExitArc& arc) override {
    for (Subscriber* subscriber : routes_->exits) subscriber->OnExit(arc);
  }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::RunState before) override {
    for (Subscriber* subscriber : routes_->states) subscriber->OnState(vcpu, before);
  }

 private:
  struct Routes {
    std::vector<Subscriber*> called;  // for one event after another, each row ended by a null
    std::array<Subscriber* const*, trace::kEventCount> by_event{};  // into `called`
    std::vector<Subscriber*> runs;
    std::vector<Subscriber*> exits;
    std::vector<Subscriber*> states;
    std::vector<Subscriber*> losses;
  };
  void Make(const std::vector<Subscriber*>& subscribers, Changes what);

  std::array<Routes, 2> all_routes_;  // by Changes
  const Routes* routes_ = all_routes_.data();
};

}  // namespace xenoscope::analysis
