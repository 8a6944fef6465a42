// How long each vCPU stays on one pCPU before it runs on another: xenalyze's "cpu affinity".
// Percentiles are over the stays, each counting once. A stay ends where the vCPU begins to run
// elsewhere, the last one with the trace.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunInterval;
using correlate::RunState;

class Affinity final : public Mergeable<Affinity> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.Runs(); }

  void OnRun(const RunInterval& interval) override {
    if (interval.state != RunState::kRunning) return;
    vcpus_.At(interval.vcpu_index, interval.vcpu).Begin({interval.pcpu, interval.range.begin});
  }

  void Finish(Tsc end) override {
    vcpus_.ForEach([end](VcpuRef /*ref*/, Stays& stays) {
      if (stays.first) stays.Add(*stays.first, stays.first_end.value_or(end));
      if (stays.first_end) stays.Add(*stays.last, end);
    });
  }

  // What came later is told once more to what was before: its first stay may go on with the last.
  void Merge(Affinity& earlier) {
    vcpus_.Absorb(earlier.vcpus_, [](Stays& stays, Stays& before) {
      if (stays.first) {
        before.Begin(*stays.first);
        if (stays.first_end) {
          before.EndLast(*stays.first_end);
          before.last = stays.last;
        }
      }
      for (const auto& [pcpu, stat] : stays.by_pcpu) before.by_pcpu[pcpu].Merge(stat);
      stays = std::move(before);
    });
  }

  void DescribeVcpu(VcpuRef vcpu, const Facts& /*facts*/, Section& out) const override {
    const Stays* stays = vcpus_.Find(vcpu);
    if (stays == nullptr || !stays->first) return;
    Group& group = out.AddGroup("affinity", "Time on one pCPU");
    Stat all;
    for (const auto& [pcpu, stat] : stays->by_pcpu) all.Merge(stat);
    Row row{"all", {}, {}};
    row.Add(all.Figures());
    for (const auto& [pcpu, stat] : stays->by_pcpu) {
      row.parts.push_back(Row{fmt::format("p{}", pcpu.value), {}, {}}.Add(stat.Figures()));
    }
    if (all.count() == 1) group.show = Show::kDetail;  // it has not moved
    group.rows.push_back(std::move(row));
  }

 private:
  struct Stay {
    PcpuId pcpu;
    Tsc since;
  };
  struct Stays {
    // When the first one really began and when the last one ends is not known before all parts of
    // the trace are put together; they may be the same.
    std::optional<Stay> first;
    std::optional<Tsc> first_end;
    std::optional<Stay> last;
    std::map<PcpuId, Stat> by_pcpu;  // the others

    void Add(const Stay& stay, Tsc end) { by_pcpu[stay.pcpu].Add(end - stay.since); }

    // It runs there from then on.
    void Begin(const Stay& stay) {
      if (last && last->pcpu == stay.pcpu) return;
      if (last) {
        EndLast(stay.since);
      } else {
        first = stay;
      }
      last = stay;
    }

    void EndLast(Tsc end) {
      if (first_end) {
        Add(*last, end);
      } else {
        first_end = end;
      }
    }
  };

  PerVcpu<Stays> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeAffinity() { return std::make_unique<Affinity>(); }

}  // namespace xenoscope::analysis
