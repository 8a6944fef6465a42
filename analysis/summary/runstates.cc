// How long each vCPU was in each runstate, with runnable split by why it was so. Percentiles are
// over time, as xenalyze's: at p50, half of the time in that state was in intervals at most that
// long.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunInterval;
using correlate::RunnableCause;
using correlate::RunState;

class Runstates final : public Mergeable<Runstates> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.Runs(); }

  void OnRun(const RunInterval& interval) override {
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
    if (interval.state == RunState::kRunnable) {
      states.by_cause[static_cast<size_t>(interval.cause)].Add(length);
    }
  }

  void Merge(Runstates& earlier) {
    vcpus_.Absorb(earlier.vcpus_, [](VcpuStates& states, const VcpuStates& more) {
      for (size_t state = 0; state < correlate::kRunStates; ++state) {
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

  void DescribeTrace(const Facts& /*facts*/, Section& out) const override {
    std::map<VcpuRef, const VcpuStates*> ordered;
    vcpus_.ForEach([&](VcpuRef ref, const VcpuStates& states) { ordered[ref] = &states; });
    Group& group = out.AddGroup("vcpus", "vCPUs");
    for (const auto& [ref, states] : ordered) {
      Row row{ToString(ref), {}, {}};
      for (size_t state = 0; state < correlate::kRunStates; ++state) {
        row.Add(ToString(static_cast<RunState>(state)), Unit::kCycles, AllCycles(*states, state));
      }
      group.rows.push_back(std::move(row));
    }
  }

  void DescribeVcpu(VcpuRef vcpu, const Facts& /*facts*/, Section& out) const override {
    const VcpuStates* states = vcpus_.Find(vcpu);
    if (states == nullptr) return;
    Group& runstates = out.AddGroup("runstates", "Runstates");
    for (const RunState state : {RunState::kRunning, RunState::kRunnable, RunState::kBlocked,
                                 RunState::kOffline, RunState::kLost}) {
      AddRow(runstates, ToString(state), states->by_state[static_cast<size_t>(state)]);
    }
    Group& runnable = out.AddGroup("runnable", "Runnable, by cause");
    for (const RunnableCause cause :
         {RunnableCause::kWake, RunnableCause::kPreempt, RunnableCause::kOther}) {
      AddRow(runnable, ToString(cause), states->by_cause[static_cast<size_t>(cause)]);
    }
    Group& edges = out.AddGroup("runstate_edges", "Not in the above", Show::kRemainder);
    for (size_t end = 0; end < 2; ++end) {
      for (size_t state = 0; state < correlate::kRunStates; ++state) {
        const Edge& edge = states->edges[end][state];
        if (edge.count == 0) continue;
        edges.rows.push_back(Row{fmt::format("{}, {}", ToString(static_cast<RunState>(state)),
                                             end == 0 ? "before its first run" : "open at the end"),
                                 {},
                                 {}}
                                 .Add("count", Unit::kCount, edge.count)
                                 .Add("cycles", Unit::kCycles, edge.cycles));
      }
    }
  }

 private:
  struct Edge {
    uint64_t count = 0;
    Cycles cycles = 0;
  };
  struct VcpuStates {
    Edge edges[2][correlate::kRunStates];
    TimeStat by_state[correlate::kRunStates];
    TimeStat by_cause[correlate::kRunnableCauses];
  };

  // The whole time in the state, at the edges of the trace too.
  static Cycles AllCycles(const VcpuStates& states, size_t state) {
    return states.by_state[state].cycles() + states.edges[0][state].cycles +
           states.edges[1][state].cycles;
  }
  static void AddRow(Group& group, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) group.rows.push_back(Row{name, {}, {}}.Add(stat.Figures()));
  }

  PerVcpu<VcpuStates> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeRunstates() { return std::make_unique<Runstates>(); }

}  // namespace xenoscope::analysis
