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

  // Whom to call for records of one event.
  class Row {
   public:
    bool Empty() const { return first_.take == nullptr; }
    void Take(const Moment& moment) const {
      first_.take(*first_.subscriber, moment);
      if (others_ == nullptr) return;
      for (const Call* call = others_; call->take != nullptr; ++call) {
        call->take(*call->subscriber, moment);
      }
    }

   private:
    friend class Dispatcher;
    struct Call {
      Subscriber* subscriber = nullptr;
      TakeRecord* take = nullptr;
    };
    // Most events have one subscriber.
    Call first_;
    const Call* others_ = nullptr;  // up to one without a function
  };
  const Row& RowOf(trace::Event event) const {
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
  void OnEntry(const correlate::VcpuTrack& vcpu, Tsc at) override {
    for (Subscriber* subscriber : routes_->entries) subscriber->OnEntry(vcpu, at);
  }

 private:
  struct Routes {
    std::vector<Row::Call> calls;  // those of the rows beyond their first
    std::array<Row, trace::kEventCount> by_event;
    std::vector<Subscriber*> runs;
    std::vector<Subscriber*> exits;
    std::vector<Subscriber*> states;
    std::vector<Subscriber*> entries;
    std::vector<Subscriber*> losses;
  };
  void Make(const std::vector<Subscriber*>& subscribers, Changes what);

  std::array<Routes, 2> all_routes_;  // by Changes
  const Routes* routes_ = all_routes_.data();
};

}  // namespace xenoscope::analysis
