// The joint state of each domain's vCPUs: full run, partial run, contention, concurrency hazard.
// Names and rules are xenalyze's. The idle domain has no such states: its vCPUs are on pCPUs of
// their own.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::TimelineState;
using correlate::VcpuTrack;

enum DomainState : uint8_t {
  kBlocked,
  kPartialRun,
  kFullRun,
  kPartialContention,
  kConcurrencyHazard,
  kFullContention,
  kLost,
  kStates
};

constexpr std::string_view kNames[kStates] = {
    "blocked",         "partial run", "full run", "partial contention", "concurrency_hazard",
    "full_contention", "lost"};

constexpr GroupInfo kRunstatesGroup{"runstates", "Runstates", SectionLevel::kDomain};
constexpr GroupInfo kRunstateEdgesGroup{"runstate_edges", "Not in the above", SectionLevel::kDomain,
                                        GroupLayout::kRemainder};

class DomainStates final : public Mergeable<DomainStates> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.States(UpdateScope::kState);
  }

  void OnState(const VcpuTrack& vcpu, TimelineState /*before*/) override {
    // A vCPU counts from its first run on.
    if (!vcpu.has_run || IsIdle(vcpu.ref)) return;
    if (vcpu.index >= vcpus_.size()) vcpus_.resize(vcpu.index + 1);
    Vcpu& known = vcpus_[vcpu.index];
    if (known.domain == nullptr) known.domain = &domains_[vcpu.ref.domain];
    Domain& domain = *known.domain;
    if (known.state != TimelineState::kUnknown) --domain.vcpus[static_cast<size_t>(known.state)];
    if (vcpu.state != TimelineState::kUnknown) ++domain.vcpus[static_cast<size_t>(vcpu.state)];
    known.state = vcpu.state;
    const DomainState state = Classify(domain);
    Close(domain, vcpu.since);
    domain.state = state;
    domain.since = vcpu.since;
  }

  void Finish(Tsc end) override { end_ = end; }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    for (auto& [id, domain] : domains_) {
      for (TimeStat& stat : domain.stats) stat = {};
    }
  }
  void SaveState(StateSnapshot& out) const override {
    for (const auto& [id, domain] : domains_) {
      if (domain.state == kStates) continue;
      out.Add(id.value, domain.state, domain.since);
      for (const uint32_t count : domain.vcpus) out.Add(count);
    }
    for (size_t i = 0; i < vcpus_.size(); ++i) {
      if (vcpus_[i].state != TimelineState::kUnknown) out.Add(i, vcpus_[i].state);
    }
  }
  void Merge(DomainStates& earlier) {
    for (const auto& [id, domain] : earlier.domains_) {
      for (size_t state = 0; state < kStates; ++state) {
        domains_[id].stats[state].Merge(domain.stats[state]);
      }
    }
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kRunstatesGroup, kRunstateEdgesGroup};
  }
  void DescribeDomain(DomainId id, const TraceMetadata& /*metadata*/, Section& out) const override {
    const auto found = domains_.find(id);
    if (found == domains_.end()) return;
    MetricGroup& group = out.AddGroup(kRunstatesGroup);
    for (size_t state = 0; state < kStates; ++state) {
      const TimeStat& stat = found->second.stats[state];
      if (stat.count() == 0) continue;
      group.rows.push_back(MetricRow{std::string(kNames[state]), {}, {}}.Add(stat.Summary()));
    }
    MetricGroup& edges = out.AddGroup(kRunstateEdgesGroup);
    const Domain& domain = found->second;
    if (domain.state == kStates) return;
    edges.rows.push_back(MetricRow{std::string(kNames[domain.state]) + ", open at the end", {}, {}}
                             .Add("count", MetricUnit::kCount, 1)
                             .Add("cycles", MetricUnit::kCycles, end_ - domain.since));
  }

 private:
  struct Domain {
    uint32_t vcpus[correlate::kTimelineStates] = {};  // number of vCPUs in each state
    DomainState state = kStates;                      // kStates: none yet
    Tsc since;
    TimeStat stats[kStates];
  };

  static DomainState Classify(const Domain& domain) {
    const auto in = [&](TimelineState state) { return domain.vcpus[static_cast<size_t>(state)]; };
    const uint32_t running = in(TimelineState::kRunning);
    const uint32_t runnable = in(TimelineState::kRunnable);
    const uint32_t waiting = in(TimelineState::kBlocked) + in(TimelineState::kOffline);
    if (running + runnable + waiting == 0) return in(TimelineState::kLost) > 0 ? kLost : kStates;
    if (running > 0 && runnable > 0) return kConcurrencyHazard;
    if (running > 0) return waiting > 0 ? kPartialRun : kFullRun;
    if (runnable > 0) return waiting > 0 ? kPartialContention : kFullContention;
    return kBlocked;
  }

  static void Close(Domain& domain, Tsc at) {
    if (domain.state == kStates || at == domain.since) return;  // several vCPUs change at once
    domain.stats[domain.state].Add(at - domain.since);
  }

  struct Vcpu {
    Domain* domain = nullptr;
    TimelineState state = TimelineState::kUnknown;
  };

  std::map<DomainId, Domain> domains_;
  std::vector<Vcpu> vcpus_;  // by VcpuTrack::index
  Tsc end_;
};

}  // namespace

std::unique_ptr<Analysis> MakeDomainStates() { return std::make_unique<DomainStates>(); }

}  // namespace xenoscope::analysis
