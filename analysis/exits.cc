// VM exits of each vCPU by reason: how many, and how long until the guest went on (ExitArc).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/registry.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

// Reasons are small numbers (VMX below 80, SVM up to 0x404); anything above is counted together
// with its number lost only here: no processor has it.
constexpr uint32_t kMostReasons = 0x440;

class Exits : public Analysis {
 public:
  void Subscribe(Subscriptions& subscriptions) const override { subscriptions.Exits(); }

  void OnExit(const correlate::ExitArc& arc) override {
    VcpuExits& exits = vcpus_.At(arc.vcpu_index, arc.vcpu);
    if (!arc.finished) {  // how long it took is not known
      ++exits.unfinished;
      exits.unfinished_cycles += arc.range.Length();
      return;
    }
    Reasons& reasons = exits.of[arc.nested ? 1 : 0];
    const uint32_t reason = std::min(arc.reason & 0xffff, kMostReasons);
    if (reason >= reasons.size()) reasons.resize(reason + 1);
    if (reasons[reason] == nullptr) reasons[reason] = std::make_unique<Stat>();
    reasons[reason]->Add(arc.range.Length());
  }

  void DescribeVcpu(VcpuRef vcpu, const Facts& facts, Section& out) const override {
    const VcpuExits* exits = vcpus_.Find(vcpu);
    if (exits == nullptr) return;
    Describe(exits->of[0], facts, out.AddGroup("exits", "Exit reasons"));
    Describe(exits->of[1], facts, out.AddGroup("nested_exits", "Exit reasons of nested guests"));
    Group& edges = out.AddGroup("exit_edges", "Not in the above");
    if (exits->unfinished == 0) return;
    edges.rows.push_back(Row{"cut off by a loss or the end", {}, {}}
                             .Add("count", Unit::kCount, exits->unfinished)
                             .Add("cycles", Unit::kCycles, exits->unfinished_cycles));
  }

 private:
  using Reasons = std::vector<std::unique_ptr<Stat>>;
  struct VcpuExits {
    Reasons of[2];  // the guest's own, nested
    uint64_t unfinished = 0;
    Cycles unfinished_cycles = 0;
  };

  static void Describe(const Reasons& reasons, const Facts& facts, Group& group) {
    for (uint32_t reason = 0; reason < reasons.size(); ++reason) {
      if (reasons[reason] == nullptr) continue;
      std::string name(trace::ExitReasonName(facts.dialect.vendor, reason));
      if (name.empty()) name = fmt::format("reason_0x{:x}", reason);
      group.rows.push_back(Row{std::move(name), {}, {}}.Add(reasons[reason]->Figures()));
    }
  }

  PerVcpu<VcpuExits> vcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakeExits() { return std::make_unique<Exits>(); }

}  // namespace xenoscope::analysis
