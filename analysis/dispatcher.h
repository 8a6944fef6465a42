// Who is called for what: records by event, intervals of the timeline by kind.
#pragma once

#include <array>
#include <vector>

#include "analysis/analysis.h"
#include "correlate/timeline.h"
#include "trace/events.h"

namespace xenoscope::analysis {

class Dispatcher final : public correlate::TimelineObserver {
 public:
  // The analyses must outlive the dispatcher.
  void Add(Analysis& analysis);

  bool Wants(trace::Event event) const { return !by_event_[static_cast<size_t>(event)].empty(); }
  void Record(const Moment& moment) const {
    for (Analysis* analysis : by_event_[static_cast<size_t>(moment.record.event)]) {
      analysis->OnRecord(moment);
    }
  }
  void Loss(const trace::Item& item) const {
    for (Analysis* analysis : losses_) analysis->OnLoss(item);
  }

  void OnRun(const correlate::RunInterval& interval) override {
    for (Analysis* analysis : runs_) analysis->OnRun(interval);
  }
  void OnExit(const correlate::ExitArc& arc) override {
    for (Analysis* analysis : exits_) analysis->OnExit(arc);
  }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::RunState before) override {
    for (Analysis* analysis : states_) analysis->OnState(vcpu, before);
  }

 private:
  std::array<std::vector<Analysis*>, static_cast<size_t>(trace::Event::kCount)> by_event_;
  std::vector<Analysis*> runs_;
  std::vector<Analysis*> exits_;
  std::vector<Analysis*> states_;
  std::vector<Analysis*> losses_;
};

}  // namespace xenoscope::analysis
