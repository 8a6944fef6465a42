// The dispatcher of a pass: it calls the subscribers of each event, and of each kind of interval.
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
  // The subscribers must outlive the dispatcher. It dispatches everything until Restrict is called.
  explicit Dispatcher(const std::vector<Subscriber*>& subscribers);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // From here on dispatches everything (kMetrics), or only what changes some state (kState).
  void Restrict(UpdateScope to) { routes_ = &all_routes_[static_cast<size_t>(to)]; }

  // The callbacks for records of one event.
  class EventRoute {
   public:
    [[nodiscard]] bool Empty() const { return first_.take == nullptr; }
    void Take(const AttributedRecord& attributed) const {
      first_.take(*first_.subscriber, attributed);
      if (others_ == nullptr) return;
      for (const Call* call = others_; call->take != nullptr; ++call) {
        call->take(*call->subscriber, attributed);
      }
    }

   private:
    friend class Dispatcher;
    struct Call {
      Subscriber* subscriber = nullptr;
      RecordCallback* take = nullptr;
    };
    // The first callback stands by itself, as most events have one subscriber.
    Call first_;
    const Call* others_ = nullptr;  // further callbacks, up to one that is null; null: none
  };
  [[nodiscard]] const EventRoute& RouteOf(trace::Event event) const {
    return routes_->by_event[static_cast<size_t>(event)];
  }
  // The strictest order that a subscriber needs.
  [[nodiscard]] trace::RecordOrder order() const { return order_; }
  void Loss(const trace::Item& item) const {
    for (Subscriber* subscriber : routes_->losses) subscriber->OnLoss(item);
  }

  [[nodiscard]] bool WantsSegments() const override { return !routes_->segments.empty(); }
  [[nodiscard]] bool WantsMarks() const override { return false; }
  [[nodiscard]] bool WantsExits() const override { return !routes_->exits.empty(); }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    for (Subscriber* subscriber : routes_->runs) subscriber->OnRunstateInterval(interval);
  }
  void OnSegment(const correlate::Segment& segment) override {
    for (Subscriber* subscriber : routes_->segments) subscriber->OnSegment(segment);
  }
  void OnExit(const correlate::ExitArc& arc) override {
    for (Subscriber* subscriber : routes_->exits) subscriber->OnExit(arc);
  }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState before) override {
    for (Subscriber* subscriber : routes_->states) subscriber->OnState(vcpu, before);
  }
  void OnEntry(const correlate::VcpuTrack& vcpu, Tsc at) override {
    for (Subscriber* subscriber : routes_->entries) subscriber->OnEntry(vcpu, at);
  }

 private:
  struct Routes {
    std::vector<EventRoute::Call> calls;  // second and further callbacks of all routes
    std::array<EventRoute, trace::kEventCount> by_event;
    std::vector<Subscriber*> runs;
    std::vector<Subscriber*> segments;
    std::vector<Subscriber*> exits;
    std::vector<Subscriber*> states;
    std::vector<Subscriber*> entries;
    std::vector<Subscriber*> losses;
  };
  void Make(const std::vector<Subscriber*>& subscribers, UpdateScope what);

  trace::RecordOrder order_ = trace::RecordOrder::kGroups;
  std::array<Routes, 2> all_routes_;  // by UpdateScope
  const Routes* routes_ = all_routes_.data();
};

}  // namespace xenoscope::analysis
