// Concurrency hazards of each vCPU: the time that it was preempted while other vCPUs of its domain
// ran, which may have waited for a lock that it held; and its address then, where the trace has it:
// that of the VM exit before an HVM or PVH guest was preempted. The trace has no addresses of PV
// guests.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "analysis/per_vcpu.h"
#include "analysis/summary/eip_lists.h"
#include "analysis/summary/registry.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

using correlate::TimelineState;
using correlate::VcpuKind;
using correlate::VcpuTrack;

constexpr GroupInfo kHazardsGroup{"hazards", "Preempted while others of its domain ran, by address",
                                  SectionLevel::kVcpu, GroupLayout::kLongList};

class Hazards final : public Mergeable<Hazards> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.States(UpdateScope::kState);
  }

  void OnState(const VcpuTrack& track, TimelineState before) override {
    if (IsIdle(track.ref)) return;
    Vcpu& vcpu = vcpus_.At(track.index, track.ref);
    if (vcpu.domain == nullptr) vcpu.domain = &DomainOf(track.ref.domain);
    Domain& domain = *vcpu.domain;
    domain.AdvanceTo(track.since);
    if (vcpu.waits) EndWait(vcpu);
    const bool runs = track.state == TimelineState::kRunning;
    if (vcpu.runs != runs) domain.running += runs ? 1 : -1;
    vcpu.runs = runs;
    if (track.state != TimelineState::kRunnable || before != TimelineState::kRunning) return;
    vcpu.waits = true;
    vcpu.shared_before = domain.with_some_running;
    vcpu.address_known = track.kind == VcpuKind::kHvm && track.exit_open;
    vcpu.address = vcpu.address_known ? track.exit_rip : 0;
    vcpu.reason = vcpu.address_known ? track.exit_reason : 0;
  }

  void Finish(Tsc end) override {
    vcpus_.ForEach([this, end](VcpuRef /*ref*/, Vcpu& vcpu) {
      if (!vcpu.waits) return;
      vcpu.domain->AdvanceTo(end);
      EndWait(vcpu);
    });
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    budget_.Restart();
    vcpus_.ForEach([](VcpuRef /*ref*/, Vcpu& vcpu) {
      vcpu.at_addresses = {};
      vcpu.elsewhere = {};
    });
  }
  void SaveState(StateSnapshot& out) const override {
    vcpus_.ForEach([&out](VcpuRef ref, const Vcpu& vcpu) {
      if (vcpu.runs) out.Add(ref, true, vcpu.domain->now);
      if (!vcpu.waits) return;
      out.Add(ref, false, vcpu.domain->now, vcpu.domain->with_some_running - vcpu.shared_before);
      out.Add(vcpu.address_known, vcpu.address, vcpu.reason);
    });
  }
  void Merge(Hazards& earlier) {
    budget_ = earlier.budget_;
    vcpus_.MergeFrom(earlier.vcpus_, [this](Vcpu& vcpu, Vcpu& before) {
      vcpu.at_addresses.Prepend(before.at_addresses, budget_);
      vcpu.elsewhere.Merge(before.elsewhere);
    });
  }

  std::vector<EntryBudget*> Budgets() override { return {&budget_}; }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kHazardsGroup}; }
  void DescribeVcpu(VcpuRef ref, const TraceMetadata& metadata, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr) return;
    MetricGroup& group = out.AddGroup(kHazardsGroup);
    vcpu->at_addresses.Describe(
        ref.domain, metadata,
        [&metadata](uint32_t reason) {
          const std::string_view name = trace::ExitReasonName(metadata.dialect.vendor, reason);
          return name.empty() ? fmt::format("exit {}", reason) : std::string(name);
        },
        group);
    if (vcpu->elsewhere.count() == 0) return;
    group.rows.push_back(MetricRow{"(address not in the trace)", {}, {}}
                             .Add("count", MetricUnit::kCount, vcpu->elsewhere.count())
                             .Add("cycles", MetricUnit::kCycles, vcpu->elsewhere.cycles()));
  }

 private:
  struct Domain {
    int running = 0;  // number of its vCPUs that run
    Tsc now;
    Cycles with_some_running = 0;  // time so far in which at least one ran

    // The time may go back between pCPUs with skewed clocks, which adds nothing.
    void AdvanceTo(Tsc at) {
      if (at <= now) return;
      if (running > 0) with_some_running += at - now;
      now = at;
    }
  };
  struct Vcpu {
    Domain* domain = nullptr;
    bool runs = false;
    // The present wait, if the vCPU was preempted.
    bool waits = false;
    bool address_known = false;
    uint32_t reason = 0;
    Address address = 0;
    Cycles shared_before = 0;  // Domain::with_some_running at its start

    EipList at_addresses;  // tag: reason of the exit
    Stat elsewhere;
  };

  Domain& DomainOf(DomainId id) {
    std::unique_ptr<Domain>& domain = domains_[id];
    if (domain == nullptr) domain = std::make_unique<Domain>();
    return *domain;
  }

  void EndWait(Vcpu& vcpu) {
    vcpu.waits = false;
    const Cycles hazard = vcpu.domain->with_some_running - vcpu.shared_before;
    if (hazard == 0) return;
    if (vcpu.address_known) {
      vcpu.at_addresses.Add(vcpu.address, vcpu.reason, hazard, budget_);
    } else {
      vcpu.elsewhere.Add(hazard);
    }
  }

  PerVcpu<Vcpu> vcpus_;
  absl::flat_hash_map<DomainId, std::unique_ptr<Domain>> domains_;
  EntryBudget budget_{1 << 16, 128};
};

}  // namespace

std::unique_ptr<Analysis> MakeHazards() { return std::make_unique<Hazards>(); }

}  // namespace xenoscope::analysis
