// The time of each vCPU in each runstate, with runnable divided by its cause. Percentiles are over
// time, as xenalyze's: half of the time in a state is in intervals not longer than p50.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunnableCause;
using correlate::RunstateInterval;
using correlate::TimelineState;

constexpr GroupInfo kVcpusGroup{"vcpus", "vCPUs", SectionLevel::kTrace, GroupLayout::kTable,
                                RowSubject::kVcpus};
constexpr GroupInfo kRunstatesGroup{"runstates", "Runstates", SectionLevel::kVcpu};
constexpr GroupInfo kRunnableGroup{"runnable", "Runnable, by cause", SectionLevel::kVcpu};
constexpr GroupInfo kRunstateEdgesGroup{"runstate_edges", "Not in the above", SectionLevel::kVcpu,
                                        GroupLayout::kRemainder};

// `Lengths` is what is counted of the lengths of intervals: TimeStat or Totals.
template <typename Lengths>
class Runstates final : public Mergeable<Runstates<Lengths>> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.RunstateIntervals(); }

  void OnRunstateInterval(const RunstateInterval& interval) override {
    VcpuStates& states = vcpus_.At(interval.vcpu_index, interval.vcpu);
    const Cycles length = interval.range.Length();
    if (interval.edge != correlate::Edge::kComplete) {
      Edge& edge = states.edges[interval.edge == correlate::Edge::kOpenAtEnd ? 1 : 0]
                               [static_cast<size_t>(interval.state)];
      ++edge.count;
      edge.cycles += length;
      return;
    }
    states.by_state[static_cast<size_t>(interval.state)].Add(length);
    if (interval.state == TimelineState::kRunnable) {
      states.by_cause[static_cast<size_t>(interval.cause)].Add(length);
    }
  }

  void Merge(Runstates& earlier) {
    vcpus_.MergeFrom(earlier.vcpus_, [](VcpuStates& states, const VcpuStates& more) {
      for (size_t state = 0; state < correlate::kTimelineStates; ++state) {
        states.by_state[state].Merge(more.by_state[state]);
        for (size_t end = 0; end < std::size(states.edges); ++end) {
          states.edges[end][state].count += more.edges[end][state].count;
          states.edges[end][state].cycles += more.edges[end][state].cycles;
        }
      }
      for (size_t cause = 0; cause < correlate::kRunnableCauses; ++cause) {
        states.by_cause[cause].Merge(more.by_cause[cause]);
      }
    });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kVcpusGroup, kRunstatesGroup, kRunnableGroup, kRunstateEdgesGroup};
  }
  void DescribeTrace(const TraceMetadata& /*metadata*/, Section& out) const override {
    std::map<VcpuRef, const VcpuStates*> ordered;
    vcpus_.ForEach([&](VcpuRef ref, const VcpuStates& states) { ordered[ref] = &states; });
    MetricGroup& group = out.AddGroup(kVcpusGroup);
    for (const auto& [ref, states] : ordered) {
      MetricRow row{ToString(ref), {}, {}};
      for (size_t state = 0; state < correlate::kTimelineStates; ++state) {
        row.Add(ToString(static_cast<TimelineState>(state)), MetricUnit::kCycles,
                AllCycles(*states, state));
      }
      group.rows.push_back(std::move(row));
    }
  }

  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& /*metadata*/, Section& out) const override {
    const VcpuStates* states = vcpus_.Find(vcpu);
    if (states == nullptr) return;
    MetricGroup& runstates = out.AddGroup(kRunstatesGroup);
    for (const TimelineState state :
         {TimelineState::kRunning, TimelineState::kRunnable, TimelineState::kBlocked,
          TimelineState::kOffline, TimelineState::kLost}) {
      AddRow(runstates, ToString(state), states->by_state[static_cast<size_t>(state)]);
    }
    MetricGroup& runnable = out.AddGroup(kRunnableGroup);
    for (const RunnableCause cause :
         {RunnableCause::kWake, RunnableCause::kPreempt, RunnableCause::kOther}) {
      AddRow(runnable, ToString(cause), states->by_cause[static_cast<size_t>(cause)]);
    }
    MetricGroup& edges = out.AddGroup(kRunstateEdgesGroup);
    for (size_t end = 0; end < 2; ++end) {
      for (size_t state = 0; state < correlate::kTimelineStates; ++state) {
        const Edge& edge = states->edges[end][state];
        if (edge.count == 0) continue;
        edges.rows.push_back(MetricRow{
            fmt::format("{}, {}", ToString(static_cast<TimelineState>(state)),
                        end == 0 ? "before its first run" : "open at the end"),
            {},
            {}}.Add("count", MetricUnit::kCount, edge.count)
                                 .Add("cycles", MetricUnit::kCycles, edge.cycles));
      }
    }
  }

 private:
  struct Edge {
    uint64_t count = 0;
    Cycles cycles = 0;
  };
  struct VcpuStates {
    Edge edges[2][correlate::kTimelineStates];
    Lengths by_state[correlate::kTimelineStates];
    Lengths by_cause[correlate::kRunnableCauses];
  };

  // Returns the whole time in the state, including its parts at the edges of the trace.
  static Cycles AllCycles(const VcpuStates& states, size_t state) {
    return states.by_state[state].cycles() + states.edges[0][state].cycles +
           states.edges[1][state].cycles;
  }
  static void AddRow(MetricGroup& group, const char* name, const Lengths& lengths) {
    if (lengths.count() > 0) group.rows.push_back(MetricRow{name, {}, {}}.Add(lengths.Summary()));
  }

  PerVcpu<VcpuStates> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeRunstates() { return std::make_unique<Runstates<TimeStat>>(); }
std::unique_ptr<Analysis> MakeRunstateTotals() { return std::make_unique<Runstates<Totals>>(); }

}  // namespace xenoscope::analysis
