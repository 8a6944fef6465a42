// The preemptions of each vCPU: what its pCPU ran while the vCPU was runnable, by the vCPU that
// ran, and by why the waiting vCPU was runnable. Its pCPU is the one where it last ran, or was
// woken; a scheduler that keeps one queue for several pCPUs may then run it on another one.
//
// Time is added when it is over: when the running vCPU stops or is chosen again, or when the
// waiting vCPU stops waiting.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/bounded_table.h"
#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunnableCause;
using correlate::RunstateInterval;
using correlate::TimelineState;
using correlate::VcpuTrack;

constexpr GroupInfo kWaitedForGroup{"waited_for", "While runnable, its pCPU ran",
                                    SectionLevel::kVcpu};
constexpr GroupInfo kWaitedForEdgesGroup{"waited_for_edges", "Not in the above",
                                         SectionLevel::kVcpu, GroupLayout::kRemainder};

class Preemptions final : public Mergeable<Preemptions> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.RunstateIntervals();
    subscriptions.States();
  }

  // Adds a timeslice, or a part of one, to all that waited for the pCPU.
  void OnRunstateInterval(const RunstateInterval& interval) override {
    if (interval.state == TimelineState::kRunnable && !IsIdle(interval.vcpu)) {
      vcpus_.At(interval.vcpu_index, interval.vcpu).runnable += interval.range.Length();
    }
    if (interval.state != TimelineState::kRunning) return;
    const std::vector<Wait>& waiting = PcpuAt(interval.pcpu).waiting;
    const size_t count = std::min(waiting.size(), kMaxWaiting);
    for (size_t i = 0; i < count; ++i) Account(waiting[i], interval.vcpu, interval.range);
  }

  void OnState(const VcpuTrack& track, TimelineState /*before*/) override {
    if (IsIdle(track.ref)) {
      NoteRunning(track);
      return;
    }
    Vcpu& vcpu = vcpus_.At(track.index, track.ref);
    if (vcpu.waits_for) StopWaiting(vcpu, track);
    NoteRunning(track);
    if (track.state == TimelineState::kRunnable) StartWaiting(vcpu, track);
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    for (const auto& track : timeline.vcpus()) {
      NoteRunning(*track);
      if (track->state != TimelineState::kRunnable || IsIdle(track->ref)) continue;
      StartWaiting(vcpus_.At(track->index, track->ref), *track);
    }
  }
  // Where runstates contradict each other, the timeline alone does not show who runs and waits
  // here.
  void SaveState(StateSnapshot& out) const override {
    for (size_t i = 0; i < pcpus_.size(); ++i) {
      const Pcpu& pcpu = pcpus_[i];
      if (pcpu.running) out.Add(i, pcpu.running->vcpu, pcpu.running->since);
      for (const Wait& wait : pcpu.waiting) out.Add(i, wait.vcpu, wait.since, wait.cause);
    }
  }
  void Merge(Preemptions& earlier) {
    budget_ = earlier.budget_;
    vcpus_.MergeFrom(earlier.vcpus_, [this](Vcpu& vcpu, Vcpu& before) {
      vcpu.runnable += before.runnable;
      vcpu.waited_for.Prepend(
          before.waited_for, kMaxRunners, budget_,
          [](ByCause& sums, const ByCause& more) {
            for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
          },
          [](const TableKey& /*key*/) { return kOthers; });
    });
  }

  std::vector<EntryBudget*> Budgets() override { return {&budget_}; }
  // A loss ends the waits of all vCPUs at one instant, in any order: that matters where a vCPU has
  // waited for more others than are kept.
  bool DependsOnOrder() const override {
    bool exceeded = false;
    vcpus_.ForEach([&exceeded](VcpuRef /*ref*/, const Vcpu& vcpu) {
      exceeded = exceeded || vcpu.waited_for.Known(kOthers) != nullptr;
    });
    return exceeded;
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kWaitedForGroup, kWaitedForEdgesGroup};
  }
  void DescribeVcpu(VcpuRef ref, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr || vcpu->runnable == 0) return;
    MetricGroup& group = out.AddGroup(kWaitedForGroup);
    Cycles known = 0;
    std::vector<MetricRow> rows;
    vcpu->waited_for.ForEach([&](const TableKey& runner, const ByCause& cycles) {
      MetricRow row{runner == kOthers ? "(others)" : ToString(VcpuOf(runner)), {}, {}};
      Cycles all = 0;
      for (const Cycles part : cycles) all += part;
      row.Add("cycles", MetricUnit::kCycles, all);
      row.Add("of_runnable", Part(all, vcpu->runnable));
      for (size_t cause = 0; cause < cycles.size(); ++cause) {
        if (cycles[cause] == 0) continue;
        row.parts.push_back(MetricRow{ToString(static_cast<RunnableCause>(cause)), {}, {}}
                                .Add("cycles", MetricUnit::kCycles, cycles[cause])
                                .Add("of_runnable", Part(cycles[cause], vcpu->runnable)));
      }
      known += all;
      if (all > 0) rows.push_back(std::move(row));
    });
    std::sort(rows.begin(), rows.end(), [](const MetricRow& a, const MetricRow& b) {
      const auto cycles = [](const MetricRow& row) {
        return std::get<uint64_t>(row.metrics.front().value);
      };
      return std::pair(cycles(b), a.name) < std::pair(cycles(a), b.name);
    });
    group.rows = std::move(rows);
    if (vcpu->runnable > known) {
      out.AddGroup(kWaitedForEdgesGroup)
          .rows.push_back(MetricRow{"not known who ran", {}, {}}.Add("cycles", MetricUnit::kCycles,
                                                                     vcpu->runnable - known));
    }
  }

 private:
  // Limit of the vCPUs that wait for one pCPU, in the order of their numbers; the time of others is
  // "not known".
  static constexpr size_t kMaxWaiting = 256;
  static constexpr uint32_t kMaxRunners = 1024;
  static constexpr TableKey kOthers{~uint64_t{0}, 0};
  using ByCause = std::array<Cycles, correlate::kRunnableCauses>;

  struct Vcpu {
    std::optional<PcpuId> waits_for;
    Cycles runnable = 0;  // time runnable that is over, in cycles
    BoundedTable<ByCause> waited_for;
  };
  struct Wait {
    VcpuRef vcpu;
    uint32_t index = 0;
    Tsc since;
    RunnableCause cause = RunnableCause::kNone;
    bool operator<(const Wait& other) const { return vcpu < other.vcpu; }
  };
  struct Running {
    VcpuRef vcpu;
    Tsc since;
  };
  struct Pcpu {
    std::vector<Wait> waiting;  // waiting vCPUs, by number
    std::optional<Running> running;
  };

  static TableKey KeyOf(VcpuRef vcpu) {
    return {uint64_t{vcpu.domain.value} << 32 | vcpu.vcpu.value, 0};
  }
  static VcpuRef VcpuOf(const TableKey& key) {
    return {DomainId{static_cast<uint16_t>(key.number >> 32)},
            VcpuId{static_cast<uint32_t>(key.number)}};
  }
  static double Part(Cycles part, Cycles whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }

  Pcpu& PcpuAt(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(size_t{pcpu.value} + 1);
    return pcpus_[pcpu.value];
  }

  // Notes the vCPU that runs now, or that none does.
  void NoteRunning(const VcpuTrack& track) {
    std::optional<Running>& running = PcpuAt(track.pcpu).running;
    if (track.state == TimelineState::kRunning) {
      running = Running{track.ref, track.since};
    } else if (running && running->vcpu == track.ref) {
      running.reset();
    }
  }

  void StartWaiting(Vcpu& vcpu, const VcpuTrack& track) {
    std::vector<Wait>& waiting = PcpuAt(track.pcpu).waiting;
    const Wait wait{track.ref, track.index, track.since, track.cause};
    waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), wait), wait);
    vcpu.waits_for = track.pcpu;
  }

  void StopWaiting(Vcpu& vcpu, const VcpuTrack& track) {
    Pcpu& pcpu = PcpuAt(*vcpu.waits_for);
    vcpu.waits_for.reset();
    const Wait key{track.ref, 0, {}, {}};
    const auto wait = std::lower_bound(pcpu.waiting.begin(), pcpu.waiting.end(), key);
    if (wait == pcpu.waiting.end() || wait->vcpu != track.ref) return;
    const bool counts = wait - pcpu.waiting.begin() < static_cast<ptrdiff_t>(kMaxWaiting);
    if (pcpu.running && pcpu.running->vcpu != track.ref && counts) {
      Account(*wait, pcpu.running->vcpu, {pcpu.running->since, track.since});
    }
    pcpu.waiting.erase(wait);
  }

  void Account(const Wait& wait, VcpuRef runner, TscRange ran) {
    const Cycles cycles = ran.Intersect({wait.since, ran.end}).Length();
    if (cycles == 0) return;
    Vcpu& vcpu = vcpus_.At(wait.index, wait.vcpu);
    vcpu.waited_for.At(KeyOf(runner), kOthers, kMaxRunners,
                       budget_)[static_cast<size_t>(wait.cause)] += cycles;
  }

  PerVcpu<Vcpu> vcpus_;
  std::vector<Pcpu> pcpus_;  // pCPUs by number
  EntryBudget budget_{1 << 16, 128};
};

}  // namespace

std::unique_ptr<Analysis> MakePreemptions() { return std::make_unique<Preemptions>(); }

}  // namespace xenoscope::analysis
