// VM exits of each vCPU: their number, the time until the guest went on (ExitArc), and their
// causes. It follows each exit through the handler's records; exit_parts, device_accesses and
// eip_lists count what is in them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <type_traits>
#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/summary/device_accesses.h"
#include "analysis/summary/eip_lists.h"
#include "analysis/summary/exit_parts.h"
#include "analysis/summary/registry.h"
#include "correlate/exit_contents.h"

namespace xenoscope::analysis {
namespace {

using correlate::ExitContents;
using trace::Event;

constexpr GroupInfo kExitsGroup{"exits", "Exit reasons", SectionLevel::kVcpu};
constexpr GroupInfo kNestedExitsGroup{"nested_exits", "Exit reasons of nested guests",
                                      SectionLevel::kVcpu};
constexpr GroupInfo kExitEdgesGroup{"exit_edges", "Not in the above", SectionLevel::kVcpu,
                                    GroupLayout::kRemainder};

// kReasons: without the groups of device accesses and of guest addresses. kTotals: without
// percentiles, too.
enum class Detail : uint8_t { kTotals, kReasons, kAll };

template <Detail kDetail>
class Exits final : public Mergeable<Exits<kDetail>> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Exits();
    subscriptions.RunstateIntervals();
    for (const Event event : correlate::HandlerEvents()) subscriptions.Record(event);
  }

  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr) return;
    VcpuExits& exits = vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    if (!attributed.vcpu->exit_open) {  // its VMEXIT was lost, or came before the trace
      ++exits.records_outside;
      return;
    }
    if (exits.open.contents.exit != attributed.vcpu->exit) Begin(exits, attributed.vcpu->exit);
    exits.open.contents.Take(attributed.record);
  }

  // Notes a wait for the device model: a vCPU that waits for it is offline. The exit's arc, which
  // ends with the wait if it is the exit's first, is reported after it.
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    if (interval.state != correlate::TimelineState::kOffline) return;
    if (interval.edge != correlate::Edge::kComplete) return;
    VcpuExits& exits = vcpus_.At(interval.vcpu_index, interval.vcpu);
    if (exits.open.contents.exit == 0 && exits.before != 0) Begin(exits, exits.before);
    exits.open.waits.Add(interval.range.Length());
    exits.last_wait = interval.range;
  }

  void OnExit(const correlate::ExitArc& arc) override {
    VcpuExits& exits = vcpus_.At(arc.vcpu_index, arc.vcpu);
    if (exits.open.contents.exit != arc.exit) {
      // The wait that ends now is of this exit, of which there was no record yet.
      const bool waited = exits.last_wait.end == arc.range.end && !exits.last_wait.Empty();
      if (waited) exits.open.waits.Remove(exits.last_wait.Length());
      Begin(exits, arc.exit);
      if (waited) exits.open.waits.Add(exits.last_wait.Length());
    }
    if (!arc.finished) {  // the length is not known
      ++exits.unfinished;
      exits.unfinished_cycles += arc.range.Length();
      return;
    }
    exits.open.TakeArc(arc, arc.range.Length());
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    for (const auto& vcpu : timeline.vcpus()) {
      if (vcpu->exit != 0) vcpus_.At(vcpu->index, vcpu->ref).before = vcpu->exit;
    }
  }

  void Merge(Exits& earlier) {
    parts_budget_ = earlier.parts_budget_;
    accesses_budget_ = earlier.accesses_budget_;
    eips_budget_ = earlier.eips_budget_;
    vcpus_.MergeFrom(earlier.vcpus_, [this](VcpuExits& exits, VcpuExits& before) {
      Join(before, exits);
      exits.parts.Prepend(before.parts, parts_budget_);
      exits.accesses.Prepend(before.accesses, accesses_budget_);
      exits.eips.Prepend(before.eips, eips_budget_);
      exits.unfinished += before.unfinished;
      exits.unfinished_cycles += before.unfinished_cycles;
      exits.records_outside += before.records_outside;
    });
  }

  void Finish(Tsc /*end*/) override {
    vcpus_.ForEach([this](VcpuRef /*ref*/, VcpuExits& exits) { Begin(exits, 0); });
  }

  std::vector<EntryBudget*> Budgets() override {
    return {&parts_budget_, &accesses_budget_, &eips_budget_};
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    std::vector<GroupInfo> groups = {kExitsGroup, kNestedExitsGroup, kExitEdgesGroup};
    if (kDetail != Detail::kAll) return groups;
    std::ranges::copy(DeviceAccesses::Groups(), std::back_inserter(groups));
    std::ranges::copy(EipLists::Groups(), std::back_inserter(groups));
    return groups;
  }
  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& metadata, Section& out) const override {
    const VcpuExits* exits = vcpus_.Find(vcpu);
    if (exits == nullptr) return;
    exits->parts.Describe(false, metadata.dialect, out.AddGroup(kExitsGroup));
    exits->parts.Describe(true, metadata.dialect, out.AddGroup(kNestedExitsGroup));
    MetricGroup& edges = out.AddGroup(kExitEdgesGroup);
    if (exits->unfinished > 0) {
      edges.rows.push_back(MetricRow{"cut off by a loss or the end", {}, {}}
                               .Add("count", MetricUnit::kCount, exits->unfinished)
                               .Add("cycles", MetricUnit::kCycles, exits->unfinished_cycles));
    }
    if (exits->records_outside > 0) {
      edges.rows.push_back(MetricRow{"handler records without a VMEXIT", {}, {}}.Add(
          "count", MetricUnit::kCount, exits->records_outside));
    }
    if (kDetail != Detail::kAll) return;
    exits->accesses.Describe(out);
    exits->eips.Describe(vcpu.domain, metadata, out);
  }

 private:
  struct OpenExit {
    ExitContents contents;
    bool measured = false;  // its arc has ended
    DeviceWaits waits;

    void Append(const OpenExit& later) {
      contents.Append(later.contents);
      waits += later.waits;
      if (later.measured) TakeArc(later.contents, later.contents.length);
    }
    template <typename Arc>
    void TakeArc(const Arc& arc, Cycles length) {
      measured = true;
      contents.reason = arc.reason;
      contents.nested = arc.nested;
      contents.rip = arc.rip;
      contents.length = length;
    }
  };
  struct VcpuExits {
    // The exit that is being handled. Its arc may end (when the vCPU is descheduled) before its
    // last record comes, so it is counted when the next exit begins.
    OpenExit open;
    // The last exit that began before the counting did; `result` is set once it is over.
    uint64_t before = 0;
    OpenExit continued;
    TscRange last_wait;  // the last time that it was offline
    ExitParts<std::conditional_t<kDetail == Detail::kTotals, Totals, Stat>> parts;
    DeviceAccesses accesses;
    EipLists eips;
    uint64_t unfinished = 0;
    Cycles unfinished_cycles = 0;
    uint64_t records_outside = 0;
  };

  // Counts the open exit, if its length is known, and opens exit number `exit`.
  void Begin(VcpuExits& exits, uint64_t exit) {
    OpenExit& open = exits.open;
    if (open.contents.exit != exits.before) {
      Count(open, exits);
    } else if (open.contents.exit != 0) {
      exits.continued = open;
    }
    open.measured = false;
    open.waits = {};
    open.contents.Open(exit);
  }

  void Count(const OpenExit& open, VcpuExits& exits) {
    if (!open.measured) return;
    const ExitContents& contents = open.contents;
    exits.parts.Add(contents, parts_budget_);
    if (kDetail != Detail::kAll) return;
    if (contents.accesses > 0) exits.accesses.Add(contents, open.waits, accesses_budget_);
    if (EipLists::Takes(contents)) exits.eips.Add(contents, eips_budget_);
  }

  // Joins the two parts of the exit in which the counting started. If the exit is over, it is
  // counted with what was before.
  void Join(VcpuExits& before, VcpuExits& exits) {
    const uint64_t open = exits.open.contents.exit;
    const bool pending = open != 0 && open == exits.before;
    OpenExit& since = pending ? exits.open : exits.continued;
    exits.before = 0;
    if (before.open.contents.exit == since.contents.exit) {
      before.open.Append(since);
      since = before.open;
    } else if (open == 0) {  // no record of it came since, nor of another exit
      exits.open = before.open;
      return;
    } else {
      Count(before.open, before);
    }
    if (!pending) Count(exits.continued, before);
    exits.continued = {};
  }

  PerVcpu<VcpuExits> vcpus_;
  // A Stat takes about 1 KiB, a count 50 bytes.
  EntryBudget parts_budget_{1 << 14, 32};
  EntryBudget accesses_budget_{1 << 14, 32};
  EntryBudget eips_budget_{1 << 17, 128, EipLists::kLists};
};

}  // namespace

std::unique_ptr<Analysis> MakeExits() { return std::make_unique<Exits<Detail::kAll>>(); }
std::unique_ptr<Analysis> MakeExitReasons() { return std::make_unique<Exits<Detail::kReasons>>(); }
std::unique_ptr<Analysis> MakeExitTotals() { return std::make_unique<Exits<Detail::kTotals>>(); }

}  // namespace xenoscope::analysis
