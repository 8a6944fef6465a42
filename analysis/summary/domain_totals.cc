// A row for each domain: what its vCPUs did in total, and its VM exits. The idle domain has none.
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::TimelineState;

constexpr GroupInfo kDomainsGroup{"domains", "Domains", SectionLevel::kTrace, GroupLayout::kRanked,
                                  RowSubject::kDomains};

class DomainTotals final : public Mergeable<DomainTotals> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.RunstateIntervals(); }

  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    Totals& totals = vcpus_.At(interval.vcpu_index, interval.vcpu);
    const Cycles length = interval.range.Length();
    switch (interval.state) {
      case TimelineState::kRunning:
        totals.running += length;
        break;
      case TimelineState::kRunnable:
        totals.runnable += length;
        break;
      case TimelineState::kBlocked:
        totals.blocked += length;
        break;
      default:
        totals.other += length;
    }
  }

  void StopCounting(const correlate::Timeline& timeline) override {
    for (const auto& track : timeline.vcpus()) {
      if (track->in_guest + track->in_hypervisor + track->exits == 0) continue;
      Totals& totals = vcpus_.At(track->index, track->ref);
      totals.in_guest = track->in_guest;
      totals.in_hypervisor = track->in_hypervisor;
      totals.exits = track->exits;
    }
  }

  void Merge(DomainTotals& earlier) {
    vcpus_.MergeFrom(earlier.vcpus_, [](Totals& totals, const Totals& more) { totals += more; });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kDomainsGroup}; }

  void DescribeTrace(const TraceMetadata& metadata, Section& out) const override {
    std::map<DomainId, Totals> domains;
    vcpus_.ForEach([&domains](VcpuRef ref, const Totals& totals) {
      if (IsIdle(ref)) return;
      Totals& sum = domains[ref.domain] += totals;
      // Of a vCPU that is never seen in its guest, the trace does not divide the time.
      if (totals.in_guest == 0) sum.in_hypervisor -= totals.in_hypervisor;
    });
    MetricGroup& group = out.AddGroup(kDomainsGroup);
    const double seconds = metadata.clock.Seconds(metadata.range.Length());
    for (const auto& [domain, totals] : domains) {
      MetricRow row{ToString(domain), {}, {}};
      row.Add("running", MetricUnit::kCycles, totals.running)
          .Add("runnable", MetricUnit::kCycles, totals.runnable)
          .Add("blocked", MetricUnit::kCycles, totals.blocked)
          .Add("other", MetricUnit::kCycles, totals.other)
          .Add("exits", MetricUnit::kCount, totals.exits);
      if (seconds > 0) {
        row.Add("exits_per_second", MetricUnit::kCount,
                static_cast<uint64_t>(std::llround(static_cast<double>(totals.exits) / seconds)));
      }
      // A vCPU that is never seen in its guest is not a HVM one: the trace does not divide its
      // time.
      if (totals.in_guest > 0) {
        row.Add("in_xen", static_cast<double>(totals.in_hypervisor) /
                              static_cast<double>(totals.in_guest + totals.in_hypervisor));
      }
      group.rows.push_back(std::move(row));
    }
  }

 private:
  struct Totals {
    Cycles running = 0;
    Cycles runnable = 0;
    Cycles blocked = 0;
    Cycles other = 0;  // offline, lost, or not known
    // As VcpuTrack has them.
    uint64_t exits = 0;
    Cycles in_guest = 0;
    Cycles in_hypervisor = 0;

    Totals& operator+=(const Totals& more) {
      running += more.running;
      runnable += more.runnable;
      blocked += more.blocked;
      other += more.other;
      exits += more.exits;
      in_guest += more.in_guest;
      in_hypervisor += more.in_hypervisor;
      return *this;
    }
  };

  PerVcpu<Totals> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeDomainTotals() { return std::make_unique<DomainTotals>(); }

}  // namespace xenoscope::analysis
