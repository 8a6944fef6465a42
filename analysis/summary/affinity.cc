// The time that each vCPU stays on one pCPU before it runs on another: xenalyze's "cpu affinity".
// Percentiles are over the stays. A stay ends when the vCPU begins to run on another pCPU, and the
// last one with the trace.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunstateInterval;
using correlate::TimelineState;

constexpr GroupInfo kAffinityGroup{"affinity", "Time on one pCPU", SectionLevel::kVcpu};

// `Lengths` is what is counted of the lengths of stays: Stat or Totals.
template <typename Lengths>
class Affinity final : public Mergeable<Affinity<Lengths>> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.RunstateIntervals(); }

  void OnRunstateInterval(const RunstateInterval& interval) override {
    if (interval.state != TimelineState::kRunning) return;
    vcpus_.At(interval.vcpu_index, interval.vcpu).Begin({interval.pcpu, interval.range.begin});
  }

  void Finish(Tsc end) override {
    vcpus_.ForEach([end](VcpuRef /*ref*/, Residencies& residencies) {
      if (residencies.first)
        residencies.Add(*residencies.first, residencies.first_end.value_or(end));
      if (residencies.first_end) residencies.Add(*residencies.last, end);
    });
  }

  // Appends this part's stays to those of `earlier`, whose last stay may go on with this part's
  // first.
  void Merge(Affinity& earlier) {
    vcpus_.MergeFrom(earlier.vcpus_, [](Residencies& residencies, Residencies& before) {
      if (residencies.first) {
        before.Begin(*residencies.first);
        if (residencies.first_end) {
          before.EndLast(*residencies.first_end);
          before.last = residencies.last;
        }
      }
      for (const auto& [pcpu, lengths] : residencies.by_pcpu) {
        before.by_pcpu[pcpu].Merge(lengths);
      }
      residencies = std::move(before);
    });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kAffinityGroup}; }
  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Residencies* residencies = vcpus_.Find(vcpu);
    if (residencies == nullptr || !residencies->first) return;
    MetricGroup& group = out.AddGroup(kAffinityGroup);
    Lengths all;
    for (const auto& [pcpu, lengths] : residencies->by_pcpu) all.Merge(lengths);
    MetricRow row{"all", {}, {}};
    row.Add(all.Summary());
    for (const auto& [pcpu, lengths] : residencies->by_pcpu) {
      row.parts.push_back(MetricRow{fmt::format("p{}", pcpu.value), {}, {}}.Add(lengths.Summary()));
    }
    if (all.count() == 1) group.layout = GroupLayout::kDetail;  // the vCPU has not moved
    group.rows.push_back(std::move(row));
  }

 private:
  struct Residency {
    PcpuId pcpu;
    Tsc since;
  };
  struct Residencies {
    // The begin of the first stay and the end of the last one are known only when all parts of the
    // trace are put together; the two may be the same stay.
    std::optional<Residency> first;
    std::optional<Tsc> first_end;
    std::optional<Residency> last;
    std::map<PcpuId, Lengths> by_pcpu;  // the others

    void Add(const Residency& residency, Tsc end) {
      by_pcpu[residency.pcpu].Add(end - residency.since);
    }

    // Begins a stay.
    void Begin(const Residency& residency) {
      if (last && last->pcpu == residency.pcpu) return;
      if (last) {
        EndLast(residency.since);
      } else {
        first = residency;
      }
      last = residency;
    }

    void EndLast(Tsc end) {
      if (first_end) {
        Add(*last, end);
      } else {
        first_end = end;
      }
    }
  };

  PerVcpu<Residencies> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeAffinity() { return std::make_unique<Affinity<Stat>>(); }
std::unique_ptr<Analysis> MakeAffinityTotals() { return std::make_unique<Affinity<Totals>>(); }

}  // namespace xenoscope::analysis
