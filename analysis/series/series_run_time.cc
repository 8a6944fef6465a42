// The use of processors: run time of each domain and of each pCPU, and every vCPU's runstates.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analysis/series/series_registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunstateInterval;
using correlate::Timeline;
using correlate::TimelineState;

// The base of series that sum up times of runstates, under a key from the derived class.
class StateTimes : public Series {
 public:
  using Series::Series;

  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.RunstateIntervals(); }
  trace::RecordOrder order() const override { return trace::RecordOrder::kCrossing; }
  void OnRunstateInterval(const RunstateInterval& run) override {
    if (!Takes(run.vcpu, run.state)) return;
    // Intervals that end before the trace shows who ran in them stay as they are.
    const TscRange range{std::max(run.range.begin, run.reported_at), run.range.end};
    sums().Close(Key(run.vcpu, run.pcpu, run.state), range);
  }
  void OnIntervalEnd(const Timeline& timeline, Tsc end) override {
    for (const auto& vcpu : timeline.vcpus()) {
      if (vcpu->state == TimelineState::kUnknown || !Takes(vcpu->ref, vcpu->state)) continue;
      sums().Carry(Key(vcpu->ref, vcpu->pcpu, vcpu->state), vcpu->reported_at, end);
    }
  }

 private:
  virtual bool Takes(VcpuRef vcpu, TimelineState state) const = 0;
  virtual uint64_t Key(VcpuRef vcpu, PcpuId pcpu, TimelineState state) const = 0;
};

class DomainRunTime : public StateTimes {
 public:
  using StateTimes::StateTimes;
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return ToString(DomainOfKey(key));
  }

 private:
  bool Takes(VcpuRef vcpu, TimelineState state) const override {
    return state == TimelineState::kRunning && Wants(vcpu.domain);
  }
  uint64_t Key(VcpuRef vcpu, PcpuId /*pcpu*/, TimelineState /*state*/) const override {
    return KeyOf(vcpu.domain, 0);
  }
};

class PcpuUtilisation : public StateTimes {
 public:
  using StateTimes::StateTimes;
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return fmt::format("p{}", key);
  }

 private:
  bool Takes(VcpuRef vcpu, TimelineState state) const override {
    return state == TimelineState::kRunning && !IsIdle(vcpu) && Wants(vcpu.domain);
  }
  uint64_t Key(VcpuRef /*vcpu*/, PcpuId pcpu, TimelineState /*state*/) const override {
    return pcpu.value;
  }
};

class Runstates : public StateTimes {
 public:
  using StateTimes::StateTimes;
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return fmt::format("{} {}", ToString(VcpuOfKey(key)),
                       correlate::ToString(static_cast<TimelineState>(key & 0xffff)));
  }

 private:
  bool Takes(VcpuRef vcpu, TimelineState /*state*/) const override { return Wants(vcpu.domain); }
  uint64_t Key(VcpuRef vcpu, PcpuId /*pcpu*/, TimelineState state) const override {
    return KeyOf(vcpu, static_cast<uint64_t>(state));
  }
};

}  // namespace

std::unique_ptr<Series> MakeDomainRunTime(DomainFilter filter) {
  return std::make_unique<DomainRunTime>(std::move(filter));
}
std::unique_ptr<Series> MakePcpuUtilisation(DomainFilter filter) {
  return std::make_unique<PcpuUtilisation>(std::move(filter));
}
std::unique_ptr<Series> MakeRunstateTimes(DomainFilter filter) {
  return std::make_unique<Runstates>(std::move(filter));
}

}  // namespace xenoscope::analysis
