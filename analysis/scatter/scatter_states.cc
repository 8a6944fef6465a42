// Scatterplots of scheduling: pCPUs, runstates, and their lengths.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "analysis/scatter/scatter_registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunstateInterval;
using correlate::TimelineState;
using correlate::VcpuTrack;

// The pCPU on which a vCPU begins to run.
class PcpuScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.States(); }
  void OnState(const VcpuTrack& vcpu, TimelineState before) override {
    if (vcpu.state != TimelineState::kRunning || before == TimelineState::kRunning) return;
    if (IsIdle(vcpu.ref) || !Wants(vcpu.ref.domain)) return;
    Point(KeyOf(vcpu.ref, 0), vcpu.since, vcpu.pcpu.value);
  }
};

StateValue ValueOf(TimelineState state) {
  switch (state) {
    case TimelineState::kRunning:
      return StateValue::kRunning;
    case TimelineState::kRunnable:
      return StateValue::kRunnable;
    case TimelineState::kBlocked:
      return StateValue::kBlocked;
    case TimelineState::kOffline:
      return StateValue::kOffline;
    case TimelineState::kLost:
    case TimelineState::kUnknown:
      break;
  }
  return StateValue::kLost;
}

// The state that a vCPU enters.
class RunstateScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.States(); }
  void OnState(const VcpuTrack& vcpu, TimelineState /*before*/) override {
    if (vcpu.state == TimelineState::kUnknown) return;  // its domain has ended
    if (IsIdle(vcpu.ref) || !Wants(vcpu.ref.domain)) return;
    Point(KeyOf(vcpu.ref, 0), vcpu.since,
          static_cast<uint64_t>(static_cast<int64_t>(ValueOf(vcpu.state))));
  }
};

// The length of the state that a vCPU leaves.
class RunstateTimeScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.RunstateIntervals(); }
  void OnRunstateInterval(const RunstateInterval& run) override {
    if (run.edge != correlate::Edge::kComplete) return;
    if (IsIdle(run.vcpu) || !Wants(run.vcpu.domain)) return;
    Point(KeyOf(run.vcpu, static_cast<uint64_t>(run.state)), run.range.end, run.range.Length());
  }
  std::string LineName(uint64_t key) const override {
    return fmt::format("{} {}", ToString(VcpuOfKey(key)),
                       correlate::ToString(static_cast<TimelineState>(key & 0xffff)));
  }
};

}  // namespace

std::unique_ptr<Scatter> MakePcpuScatter(ScatterOptions options) {
  return std::make_unique<PcpuScatter>(std::move(options.filter));
}
std::unique_ptr<Scatter> MakeRunstateScatter(ScatterOptions options) {
  return std::make_unique<RunstateScatter>(std::move(options.filter));
}
std::unique_ptr<Scatter> MakeRunstateTimeScatter(ScatterOptions options) {
  return std::make_unique<RunstateTimeScatter>(std::move(options.filter));
}

}  // namespace xenoscope::analysis
