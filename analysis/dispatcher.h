// Who is called for what: records by event, intervals of the timeline by kind.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "analysis/analysis.h"
#include "correlate/timeline.h"
#include "trace/events.h"

namespace xenoscope::analysis {

class Dispatcher final : public correlate::TimelineObserver {
 public:
  // The analyses must outlive the dispatcher.
  explicit Dispatcher(const std::vector<Analysis*>& analyses);

  bool Wants(trace::Event event) const { return by_event_[static_cast<size_t>(event)].front(); }
  void Record(const Moment& moment) const {
    Analysis* const* analysis = by_event_[static_cast<size_t>(moment.record.event)].data();
    while (*analysis != nullptr) (*analysis++)->OnRecord(moment);
  }
  void Loss(const trace::Item& item) const {
    for (Analysis* analysis : losses_) analysis->OnLoss(item);
  }

  // The summary's analyses look at records and whole intervals.
  bool WantsSegments() const override { return false; }
  bool WantsMarks() const override { return false; }
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
  // Each ends with a null.
  std::array<std::vector<Analysis*>, trace::kEventCount> by_event_;
  std::vector<Analysis*> runs_;
  std::vector<Analysis*> exits_;
  std::vector<Analysis*> states_;
  std::vector<Analysis*> losses_;
};

}  // namespace xenoscope::analysis
