// Sees a profile in the making: each item of the trace, what the timeline makes of it, and each
// sample as it is placed.
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
  // In the order of the trace, each before the timeline takes it. A sample comes after all items of
  // its bracket, often long after.
  virtual void OnItem(const trace::Item& item) = 0;
  // Why it wants no more of the trace; reading ends with this error.
  virtual absl::Status status() const { return absl::OkStatus(); }
};

// Hands everything on to several, which outlive it.
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
  void OnTraced(VcpuRef vcpu, Context context, Cycles cycles) override {
    for (PlacingObserver* each : observers_) each->OnTraced(vcpu, context, cycles);
  }

 private:
  std::vector<PlacingObserver*> observers_;
};

}  // namespace xenoscope::correlate
