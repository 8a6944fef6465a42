// Observes all steps of a profile: the items of the trace, the timeline that they make, and the
// samples as they are placed.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/timeline.h"
#include "trace/record.h"

namespace xenoscope::correlate {

class PipelineObserver : public PlacingObserver, public TimelineObserver {
 public:
  // Receives the items in the order of the trace, each before the timeline takes it. A sample comes
  // after all items of its bracket, often long after them.
  virtual void OnItem(const trace::Item& item) = 0;
  // An error ends the reading of the trace, which then fails with it.
  [[nodiscard]] virtual absl::Status status() const { return absl::OkStatus(); }
};

// Gives everything to several observers, which outlive this one.
class FanOutObserver final : public PlacingObserver {
 public:
  explicit FanOutObserver(std::vector<PlacingObserver*> all) : observers_(std::move(all)) {}
  void Add(PlacingObserver* another) { observers_.push_back(another); }
  void OnPlaced(const PlacedSample& sample) override {
    for (PlacingObserver* each : observers_) each->OnPlaced(sample);
  }
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override {
    for (PlacingObserver* each : observers_) each->OnUnplaced(sample, why);
  }
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    for (PlacingObserver* each : observers_) each->OnTraced(vcpu, context, time);
  }

 private:
  std::vector<PlacingObserver*> observers_;
};

}  // namespace xenoscope::correlate
