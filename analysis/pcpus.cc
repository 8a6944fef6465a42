// What each pCPU did: ran a vCPU, idled, or left no trace because records were lost. A turn that
// the scheduler prolongs (TRC_SCHED_CONTINUE_RUNNING) is one interval of its pCPU; the last one
// ends with the pCPU's trace. Percentiles are over time. The figures, and what is not in them, make
// up the time of the trace.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunInterval;
using correlate::RunState;

class Pcpus final : public Mergeable<Pcpus> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Runs(Changes::kState);
    subscriptions.Losses(Changes::kState);
  }

  void OnRun(const RunInterval& interval) override {
    if (interval.state != RunState::kRunning) return;
    Pcpu& pcpu = Of(interval.pcpu);
    if (interval.number != pcpu.number) {
      Close(pcpu);
      pcpu.number = interval.number;
      pcpu.idle = IsIdle(interval.vcpu);
      pcpu.range.begin = interval.range.begin;
    }
    pcpu.range.end = interval.range.end;
  }

  void OnLoss(const trace::Item& item) override {
    Pcpu& pcpu = Of(item.record.pcpu);
    if (item.kind == trace::ItemKind::kLossBegin) {
      pcpu.loss_begin = item.record.tsc;
      return;
    }
    pcpu.figures.lost_records += item.lost;
    pcpu.figures.lost.Add(item.record.tsc - pcpu.loss_begin);
  }

  void Finish(Tsc /*end*/) override {
    for (Pcpu& pcpu : pcpus_) Close(pcpu);
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    for (Pcpu& pcpu : pcpus_) pcpu.figures = {};
  }
  void Merge(Pcpus& earlier) {
    for (size_t i = 0; i < earlier.pcpus_.size(); ++i) {
      const Pcpu& more = earlier.pcpus_[i];
      if (more.seen) Of(PcpuId{static_cast<uint32_t>(i)}).figures.Merge(more.figures);
    }
  }

  void DescribeTrace(const Facts& facts, Section& out) const override {
    Group& pcpus = out.AddGroup("utilisation", "pCPUs");
    Group edges{"pcpu_edges", "Not in the above", {}, Show::kRemainder};
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      const Figures& pcpu = pcpus_[i].figures;
      if (!pcpus_[i].seen) continue;
      Row row{fmt::format("p{}", i), {}, {}};
      AddPart(row, "running", pcpu.running);
      AddPart(row, "idle", pcpu.idling);
      AddPart(row, "lost", pcpu.lost);
      if (pcpu.lost_records > 0) row.Add("lost_records", Unit::kCount, pcpu.lost_records);
      const Cycles known = pcpu.running.cycles() + pcpu.idling.cycles() + pcpu.lost.cycles();
      if (facts.range.Length() > known) {
        AddEdge(edges, row.name + ", not known who ran", facts.range.Length() - known);
      }
      pcpus.rows.push_back(std::move(row));
    }
    out.groups.push_back(std::move(edges));
  }

 private:
  struct Figures {
    uint64_t lost_records = 0;
    TimeStat running;
    TimeStat idling;
    TimeStat lost;

    void Merge(const Figures& more) {
      lost_records += more.lost_records;
      running.Merge(more.running);
      idling.Merge(more.idling);
      lost.Merge(more.lost);
    }
  };
  struct Pcpu {
    bool seen = false;
    // The interval that may go on, as far as it is known.
    uint64_t number = 0;  // 0: none
    bool idle = false;
    TscRange range;

    Tsc loss_begin;
    Figures figures;
  };

  Pcpu& Of(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    pcpus_[pcpu.value].seen = true;
    return pcpus_[pcpu.value];
  }
  static void Close(Pcpu& pcpu) {
    if (pcpu.number == 0) return;
    (pcpu.idle ? pcpu.figures.idling : pcpu.figures.running).Add(pcpu.range.Length());
    pcpu.number = 0;
  }
  static void AddPart(Row& row, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) row.parts.push_back(Row{name, {}, {}}.Add(stat.Figures()));
  }
  static void AddEdge(Group& group, std::string name, Cycles cycles) {
    group.rows.push_back(Row{std::move(name), {}, {}}.Add("cycles", Unit::kCycles, cycles));
  }

  std::vector<Pcpu> pcpus_;  // by number
};

}  // namespace

std::unique_ptr<Analysis> MakePcpus() { return std::make_unique<Pcpus>(); }

}  // namespace xenoscope::analysis
