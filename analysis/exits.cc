// VM exits of each vCPU: how many, how long until the guest went on (ExitArc), and what they were
// about. Follows each vCPU's exit through the handler's records; what is counted of it is in
// exit_parts, device_accesses and eip_lists.
#include <fmt/format.h>

#include <memory>

#include "analysis/device_accesses.h"
#include "analysis/eip_lists.h"
#include "analysis/exit_contents.h"
#include "analysis/exit_parts.h"
#include "analysis/per_vcpu.h"
#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

constexpr Event kHandlerEvents[] = {
    Event::kHvmPfXen,
    Event::kHvmPfInject,
    Event::kHvmIoRead,
    Event::kHvmIoWrite,
    Event::kHvmCrRead,
    Event::kHvmCrWrite,
    Event::kHvmDrRead,
    Event::kHvmDrWrite,
    Event::kHvmMsrRead,
    Event::kHvmMsrWrite,
    Event::kHvmCpuid,
    Event::kHvmIntr,
    Event::kHvmNmi,
    Event::kHvmSmi,
    Event::kHvmVmmcall,
    Event::kHvmHlt,
    Event::kHvmInvlpg,
    Event::kHvmMce,
    Event::kHvmIoportRead,
    Event::kHvmIoportWrite,
    Event::kHvmIomemRead,
    Event::kHvmIomemWrite,
    Event::kHvmClts,
    Event::kHvmLmsw,
    Event::kHvmRdtsc,
    Event::kHvmNpf,
    Event::kHvmRealmodeEmulate,
    Event::kHvmTrap,
    Event::kHvmTrapDebug,
    Event::kHvmVlapic,
    Event::kHvmXcrRead,
    Event::kHvmXcrWrite,
    Event::kShadowNotShadow,
    Event::kShadowFastPropagate,
    Event::kShadowFastMmio,
    Event::kShadowFalseFastPath,
    Event::kShadowMmio,
    Event::kShadowFixup,
    Event::kShadowDomfDying,
    Event::kShadowEmulate,
    Event::kShadowEmulateUnshadowUser,
    Event::kShadowEmulateUnshadowEvtinj,
    Event::kShadowEmulateUnshadowUnhandled,
    Event::kShadowWrmapBf,
    Event::kShadowPreallocUnpin,
    Event::kShadowResyncFull,
    Event::kShadowResyncOnly,
};

class Exits : public Analysis {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Exits();
    for (const Event event : kHandlerEvents) subscriptions.Record(event);
  }

  void OnRecord(const Moment& moment) override {
    if (moment.vcpu == nullptr) return;
    VcpuExits& exits = vcpus_.At(moment.vcpu->index, moment.vcpu->ref);
    if (!moment.vcpu->exit_open) {  // its VMEXIT was lost, or came before the trace
      ++exits.records_outside;
      return;
    }
    if (exits.open.exit != moment.vcpu->exit) Begin(exits, moment.vcpu->exit);
    exits.open.Take(moment.record);
  }

  void OnExit(const correlate::ExitArc& arc) override {
    VcpuExits& exits = vcpus_.At(arc.vcpu_index, arc.vcpu);
    if (exits.open.exit != arc.exit) Begin(exits, arc.exit);
    if (!arc.finished) {  // how long it took is not known
      ++exits.unfinished;
      exits.unfinished_cycles += arc.range.Length();
      return;
    }
    exits.measured = true;
    exits.open.reason = arc.reason;
    exits.open.nested = arc.nested;
    exits.open.rip = arc.rip;
    exits.open.length = arc.range.Length();
  }

  void Finish(Tsc /*end*/) override {
    vcpus_.ForEach([this](VcpuRef /*ref*/, VcpuExits& exits) { Begin(exits, 0); });
  }

  void DescribeVcpu(VcpuRef vcpu, const Facts& facts, Section& out) const override {
    const VcpuExits* exits = vcpus_.Find(vcpu);
    if (exits == nullptr) return;
    exits->parts.Describe(false, facts.dialect, out.AddGroup("exits", "Exit reasons"));
    exits->parts.Describe(true, facts.dialect,
                          out.AddGroup("nested_exits", "Exit reasons of nested guests"));
    Group& edges = out.AddGroup("exit_edges", "Not in the above", Show::kRemainder);
    if (exits->unfinished > 0) {
      edges.rows.push_back(Row{"cut off by a loss or the end", {}, {}}
                               .Add("count", Unit::kCount, exits->unfinished)
                               .Add("cycles", Unit::kCycles, exits->unfinished_cycles));
    }
    if (exits->records_outside > 0) {
      edges.rows.push_back(Row{"handler records without a VMEXIT", {}, {}}.Add(
          "count", Unit::kCount, exits->records_outside));
    }
    exits->accesses.Describe(out);
    exits->eips.Describe(vcpu.domain, facts, out);
  }

 private:
  struct VcpuExits {
    // The exit being handled. Its arc may end (at a descheduling) before its last record comes, so
    // that it is counted when the next one begins.
    ExitContents open;
    bool measured = false;  // the open exit's arc has ended
    ExitParts parts;
    DeviceAccesses accesses;
    EipLists eips;
    uint64_t unfinished = 0;
    Cycles unfinished_cycles = 0;
    uint64_t records_outside = 0;
  };

  // Counts the open exit, if its length is known, and opens the one with this number.
  void Begin(VcpuExits& exits, uint64_t exit) {
    ExitContents& open = exits.open;
    if (exits.measured) {
      exits.parts.Add(open, parts_room_);
      if (open.accesses > 0) exits.accesses.Add(open, accesses_room_);
      if (open.emulated || open.kind == ExitKind::kInterrupt) exits.eips.Add(open, eips_room_);
    }
    exits.measured = false;
    open.Open(exit);
  }

  PerVcpu<VcpuExits> vcpus_;
  // A Stat takes some 2 KiB, a count 50 bytes.
  Room parts_room_{4096};
  Room accesses_room_{4096};
  Room eips_room_{1 << 17};
};

}  // namespace

std::unique_ptr<Analysis> MakeExits() { return std::make_unique<Exits>(); }

}  // namespace xenoscope::analysis
