// How long each vCPU stays on one pCPU before it runs on another: xenalyze's "cpu affinity".
// Percentiles are over the stays, each counting once. A stay ends where the vCPU begins to run
// elsewhere, the last one with the trace.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunInterval;
using correlate::RunState;

class Affinity final : public Mergeable<Affinity> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Runs(Changes::kState);
  }

  void OnRun(const RunInterval& interval) override {
    if (interval.state != RunState::kRunning) return;
    Stays& stays = vcpus_.At(interval.vcpu_index, interval.vcpu);
    if (stays.known && interval.pcpu == stays.pcpu) return;
    if (stays.known) stays.by_pcpu[stays.pcpu].Add(interval.range.begin - stays.since);
    stays.known = true;
    stays.pcpu = interval.pcpu;
    stays.since = interval.range.begin;
  }

  void Finish(Tsc end) override {
    vcpus_.ForEach([end](VcpuRef /*ref*/, Stays& stays) {
      if (stays.known) stays.by_pcpu[stays.pcpu].Add(end - stays.since);
    });
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    vcpus_.ForEach([](VcpuRef /*ref*/, Stays& stays) { stays.by_pcpu.clear(); });
  }
  void Merge(Affinity& earlier) {
    vcpus_.Absorb(earlier.vcpus_, [](Stays& stays, const Stays& more) {
      for (const auto& [pcpu, stat] : more.by_pcpu) stays.by_pcpu[pcpu].Merge(stat);
    });
  }

  void DescribeVcpu(VcpuRef vcpu, const Facts& /*facts*/, Section& out) const override {
    const Stays* stays = vcpus_.Find(vcpu);
    if (stays == nullptr || !stays->known) return;
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
  struct Stays {
    bool known = false;
    PcpuId pcpu;
    Tsc since;
    std::map<PcpuId, Stat> by_pcpu;
  };

  PerVcpu<Stays> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeAffinity() { return std::make_unique<Affinity>(); }

}  // namespace xenoscope::analysis
