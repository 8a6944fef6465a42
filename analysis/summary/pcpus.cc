// What each pCPU did: ran a vCPU, idled, or left no trace because records were lost. A turn that
// the scheduler prolongs (TRC_SCHED_CONTINUE_RUNNING) is one interval of its pCPU; the last one
// ends with the pCPU's trace. Percentiles are over time. The figures, and what is not in them, make
// up the time of the trace.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunInterval;
using correlate::RunState;
using correlate::VcpuTrack;

class Pcpus final : public Mergeable<Pcpus> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Runs();
    subscriptions.Losses(Changes::kState);
  }

  void OnRun(const RunInterval& interval) override {
    if (interval.state != RunState::kRunning) return;
    Pcpu& pcpu = Of(interval.pcpu);
    if (!pcpu.turn || interval.number != pcpu.turn->number) {
      Close(pcpu);
      pcpu.turn = Turn{interval.number, IsIdle(interval.vcpu), interval.range};
    }
    pcpu.turn->range.end = interval.range.end;
  }

  void OnLoss(const trace::Item& item) override {
    Pcpu& pcpu = Of(item.record.pcpu);
    if (item.kind == trace::ItemKind::kLossBegin) {
      pcpu.loss_begin = item.record.tsc;
      return;
    }
    pcpu.figures.lost_records += item.lost;
    pcpu.figures.lost.Add(item.record.tsc - pcpu.loss_begin.value_or(item.record.tsc));
    pcpu.loss_begin.reset();
  }

  void Finish(Tsc /*end*/) override {
    for (Pcpu& pcpu : pcpus_) {
      if (pcpu.first) pcpu.figures.Add(*pcpu.first);
      if (pcpu.turn) pcpu.figures.Add(*pcpu.turn);
    }
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    for (Pcpu& pcpu : pcpus_) pcpu.figures = {};
    for (const auto& vcpu : timeline.vcpus()) {
      if (timeline.Current(vcpu->pcpu) == vcpu.get()) Of(vcpu->pcpu).first_number = vcpu->run;
    }
  }
  void Remember(Remembered& out) const override {
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      if (pcpus_[i].loss_begin) out.Add(i, pcpus_[i].loss_begin);
    }
  }
  void StopCounting(const correlate::Timeline& timeline) override {
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      const VcpuTrack* vcpu = timeline.Current(PcpuId{static_cast<uint32_t>(i)});
      pcpus_[i].goes_on = vcpu != nullptr && pcpus_[i].turn && vcpu->run == pcpus_[i].turn->number;
    }
  }
  void Merge(Pcpus& earlier) {
    for (size_t i = 0; i < earlier.pcpus_.size(); ++i) {
      Pcpu& before = earlier.pcpus_[i];
      if (!before.seen) continue;
      Pcpu& pcpu = Of(PcpuId{static_cast<uint32_t>(i)});
      pcpu.figures.Merge(before.figures);
      Join(before, pcpu);
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
  // As far as it is known; it may go on.
  struct Turn {
    uint64_t number;  // of the running interval
    bool idle;
    TscRange range;
  };
  struct Figures {
    uint64_t lost_records = 0;
    TimeStat running;
    TimeStat idling;
    TimeStat lost;

    void Add(const Turn& turn) { (turn.idle ? idling : running).Add(turn.range.Length()); }
    void Merge(const Figures& more) {
      lost_records += more.lost_records;
      running.Merge(more.running);
      idling.Merge(more.idling);
      lost.Merge(more.lost);
    }
  };
  struct Pcpu {
    bool seen = false;
    std::optional<Turn> turn;
    // The turn that was going on when the counting started, which may have begun before: its
    // number, and itself once it is over.
    uint64_t first_number = 0;  // 0: none
    std::optional<Turn> first;
    bool goes_on = false;  // the turn, when the counting stopped
    std::optional<Tsc> loss_begin;
    Figures figures;
  };

  Pcpu& Of(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    pcpus_[pcpu.value].seen = true;
    return pcpus_[pcpu.value];
  }
  static void Close(Pcpu& pcpu) {
    if (!pcpu.turn) return;
    if (pcpu.turn->number == pcpu.first_number) {
      pcpu.first = pcpu.turn;
    } else {
      pcpu.figures.Add(*pcpu.turn);
    }
    pcpu.turn.reset();
  }
  // The turn that was going on is one with what was seen of it before.
  static void Join(const Pcpu& before, Pcpu& pcpu) {
    if (before.first) pcpu.figures.Add(*before.first);
    if (before.turn && !before.goes_on) pcpu.figures.Add(*before.turn);
    const bool goes_on = before.turn && before.goes_on;
    if (pcpu.first) {
      if (goes_on) pcpu.first->range.begin = before.turn->range.begin;
      pcpu.figures.Add(*pcpu.first);
      pcpu.first.reset();
    } else if (goes_on) {
      if (!pcpu.turn) {
        pcpu.turn = Turn{pcpu.first_number, before.turn->idle, before.turn->range};
      } else if (pcpu.turn->number == pcpu.first_number) {
        pcpu.turn->range.begin = before.turn->range.begin;
      } else {  // nothing of it was seen since
        pcpu.figures.Add(*before.turn);
      }
    }
    pcpu.first_number = 0;
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
