// The use of each pCPU: it ran a vCPU, idled, or its records were lost. A timeslice that the
// scheduler extends (TRC_SCHED_CONTINUE_RUNNING) is one interval; the last one ends with the pCPU's
// trace. Percentiles are over time. The figures and their remainders add up to the time of the
// trace.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunstateInterval;
using correlate::TimelineState;

constexpr GroupInfo kUtilisationGroup{"utilisation", "pCPUs", SectionLevel::kTrace,
                                      GroupLayout::kTable, RowSubject::kPcpus};

constexpr GroupInfo kPcpuEdgesGroup{"pcpu_edges", "Not in the above", SectionLevel::kTrace,
                                    GroupLayout::kRemainder, RowSubject::kPcpus};

class Pcpus final : public Mergeable<Pcpus> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.RunstateIntervals();
    subscriptions.Losses(UpdateScope::kState);
  }

  void OnRunstateInterval(const RunstateInterval& interval) override {
    if (interval.state != TimelineState::kRunning) return;
    Pcpu& pcpu = PcpuAt(interval.pcpu);
    pcpu.seen = true;
    if (!pcpu.timeslice || interval.number != pcpu.timeslice->number) {
      Close(pcpu);
      pcpu.timeslice = Timeslice{interval.number, interval.vcpu, interval.range};
      pcpu.in_first = !pcpu.has_run && interval.number <= last_before_;
      pcpu.has_run = true;
    }
    pcpu.timeslice->range.end = interval.range.end;
  }

  void OnLoss(const trace::Item& item) override {
    Pcpu& pcpu = PcpuAt(item.record.pcpu);
    pcpu.seen = true;
    if (item.kind == trace::ItemKind::kLossBegin) {
      pcpu.loss_begin = item.record.tsc;
      return;
    }
    pcpu.counters.lost_records += item.lost;
    pcpu.counters.lost.Add(item.record.tsc - pcpu.loss_begin.value_or(item.record.tsc));
    pcpu.loss_begin.reset();
  }

  void Finish(Tsc /*end*/) override {
    for (Pcpu& pcpu : pcpus_) {
      if (pcpu.first) pcpu.counters.Add(*pcpu.first);
      if (pcpu.timeslice) pcpu.counters.Add(*pcpu.timeslice);
    }
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    for (Pcpu& pcpu : pcpus_) pcpu.counters = {};
    for (const auto& vcpu : timeline.vcpus()) {
      last_before_ = std::max(last_before_, vcpu->timeslice_id);
    }
  }
  void SaveState(StateSnapshot& out) const override {
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      if (pcpus_[i].loss_begin) out.Add(i, pcpus_[i].loss_begin);
    }
  }
  void StopCounting(const correlate::Timeline& timeline) override {
    for (Pcpu& pcpu : pcpus_) {
      pcpu.continues = false;
      pcpu.running_since_before.clear();
    }
    for (const auto& vcpu : timeline.vcpus()) {
      if (vcpu->state != TimelineState::kRunning) continue;
      Pcpu& pcpu = PcpuAt(vcpu->pcpu);
      if (pcpu.timeslice && pcpu.timeslice->number == vcpu->timeslice_id) pcpu.continues = true;
      if (vcpu->timeslice_id <= last_before_) pcpu.running_since_before.push_back(vcpu->ref);
    }
  }
  void Merge(Pcpus& earlier) {
    for (size_t i = 0; i < earlier.pcpus_.size(); ++i) {
      Pcpu& before = earlier.pcpus_[i];
      Pcpu& pcpu = PcpuAt(PcpuId{static_cast<uint32_t>(i)});
      pcpu.seen |= before.seen;
      pcpu.counters.Merge(before.counters);
      Join(before, pcpu);
    }
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kUtilisationGroup, kPcpuEdgesGroup};
  }
  void DescribeTrace(const TraceMetadata& metadata, Section& out) const override {
    MetricGroup& pcpus = out.AddGroup(kUtilisationGroup);
    MetricGroup& edges = out.AddGroup(kPcpuEdgesGroup);
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      const Counters& pcpu = pcpus_[i].counters;
      if (!pcpus_[i].seen) continue;
      MetricRow row{fmt::format("p{}", i), {}, {}};
      AddPart(row, "running", pcpu.running);
      AddPart(row, "idle", pcpu.idling);
      AddPart(row, "lost", pcpu.lost);
      if (pcpu.lost_records > 0) row.Add("lost_records", MetricUnit::kCount, pcpu.lost_records);
      const Cycles known = pcpu.running.cycles() + pcpu.idling.cycles() + pcpu.lost.cycles();
      if (metadata.range.Length() > known) {
        AddEdge(edges, row.name + ", not known who ran", metadata.range.Length() - known);
      }
      pcpus.rows.push_back(std::move(row));
    }
  }

 private:
  // A timeslice as far as it is known; it may go on.
  struct Timeslice {
    uint64_t number;  // number of the running interval
    VcpuRef vcpu;
    TscRange range;
  };
  struct Counters {
    uint64_t lost_records = 0;
    TimeStat running;
    TimeStat idling;
    TimeStat lost;

    void Add(const Timeslice& timeslice) {
      (IsIdle(timeslice.vcpu) ? idling : running).Add(timeslice.range.Length());
    }
    void Merge(const Counters& more) {
      lost_records += more.lost_records;
      running.Merge(more.running);
      idling.Merge(more.idling);
      lost.Merge(more.lost);
    }
  };
  struct Pcpu {
    bool seen = false;
    bool has_run = false;  // since the counting started
    // Whether the timeslice is the first since the counting started, and began before that.
    bool in_first = false;
    bool continues = false;  // whether the timeslice was open when the counting stopped
    std::optional<Timeslice> timeslice;
    std::optional<Tsc> loss_begin;
    Counters counters;
    std::optional<Timeslice> first;  // the first timeslice, as in_first, once it is over
    // The vCPUs that ran here when the counting stopped, and had since it started: one, unless
    // runstates contradict each other.
    std::vector<VcpuRef> running_since_before;
  };

  Pcpu& PcpuAt(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    return pcpus_[pcpu.value];
  }
  static void Close(Pcpu& pcpu) {
    if (!pcpu.timeslice) return;
    if (pcpu.in_first) {
      pcpu.first = pcpu.timeslice;
      pcpu.in_first = false;
    } else {
      pcpu.counters.Add(*pcpu.timeslice);
    }
    pcpu.timeslice.reset();
  }
  // Adds the open timeslice of the part before, which this one may have gone on with.
  static void Join(const Pcpu& before, Pcpu& pcpu) {
    if (before.first) pcpu.counters.Add(*before.first);
    if (before.timeslice) {
      const VcpuRef vcpu = before.timeslice->vcpu;
      std::optional<Timeslice>& first = pcpu.in_first ? pcpu.timeslice : pcpu.first;
      if (before.continues && first && first->vcpu == vcpu) {
        first->range.begin = before.timeslice->range.begin;
      } else if (before.continues && !pcpu.has_run &&
                 std::ranges::count(pcpu.running_since_before, vcpu) > 0) {
        pcpu.timeslice = before.timeslice;  // without a record in this part
        pcpu.continues = true;
      } else {
        pcpu.counters.Add(*before.timeslice);
      }
    }
    if (pcpu.first) pcpu.counters.Add(*pcpu.first);
    pcpu.first.reset();
    pcpu.in_first = false;
  }
  static void AddPart(MetricRow& row, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) row.parts.push_back(MetricRow{name, {}, {}}.Add(stat.Summary()));
  }
  static void AddEdge(MetricGroup& group, std::string name, Cycles cycles) {
    group.rows.push_back(
        MetricRow{std::move(name), {}, {}}.Add("cycles", MetricUnit::kCycles, cycles));
  }

  std::vector<Pcpu> pcpus_;   // pCPUs by number
  uint64_t last_before_ = 0;  // the number of the last timeslice when the counting started
};

}  // namespace

std::unique_ptr<Analysis> MakePcpus() { return std::make_unique<Pcpus>(); }

}  // namespace xenoscope::analysis
