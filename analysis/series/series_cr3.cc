// The run time of HVM domains' vCPUs in each address space (cr3), from the first traced write of
// cr3 on.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/address_space.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunstateInterval;
using correlate::Timeline;
using correlate::TimelineState;

class Cr3Time : public Series {
 public:
  using Series::Series;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(trace::Event::kHvmCrWrite);
    subscriptions.RunstateIntervals();
  }
  void OnRecord(const AttributedRecord& attributed) override {
    const auto written = WrittenCr3(attributed.record);
    if (!written || attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    Space& space = spaces_.At(attributed.vcpu->index, attributed.vcpu->ref);
    Close(space, {attributed.vcpu->since, attributed.record.tsc});
    space = {KeyOf(attributed.vcpu->ref.domain, *written), attributed.record.tsc, true};
  }
  void OnRunstateInterval(const RunstateInterval& run) override {
    if (run.state != TimelineState::kRunning) return;
    Close(spaces_.At(run.vcpu_index, run.vcpu), run.range);
  }
  void OnIntervalEnd(const Timeline& timeline, Tsc end) override {
    for (const auto& vcpu : timeline.vcpus()) {
      const Space& space = spaces_.At(vcpu->index, vcpu->ref);
      if (!space.known || vcpu->state != TimelineState::kRunning) continue;
      sums().Carry(space.key, std::max(space.since, vcpu->since), end);
    }
  }
  std::string LineName(uint64_t key, const TraceMetadata& /*metadata*/) const override {
    return fmt::format("{} cr3 0x{:x}", ToString(DomainOfKey(key)), WhatOfKey(key));
  }

 private:
  struct Space {
    uint64_t key = 0;
    Tsc since;
    bool known = false;
  };

  // Adds the part of `range` in which the vCPU was in this space.
  void Close(const Space& space, TscRange range) {
    if (!space.known) return;
    sums().Close(space.key, {std::max(space.since, range.begin), range.end});
  }

  PerVcpu<Space> spaces_;
};

}  // namespace

std::unique_ptr<Series> MakeCr3Time(DomainFilter filter) {
  return std::make_unique<Cr3Time>(std::move(filter));
}

}  // namespace xenoscope::analysis
