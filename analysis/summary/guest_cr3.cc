// The address spaces (cr3 values) of each HVM vCPU: switches, time in the guest, and time in the
// hypervisor for it. They are known from the first write of cr3 that exits to Xen. That happens
// with shadow page tables only; with nested paging the processor does not exit.
//
// A write takes effect at the next VMENTRY, so the time of the exit with the write belongs to the
// space before. When counting begins in the middle of the trace that space is not known, so its
// times are kept apart until Merge().
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/bounded_table.h"
#include "analysis/per_vcpu.h"
#include "analysis/summary/address_space.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::VcpuTrack;
using trace::Event;

// The page of the top table: bits 12 to 51; the others are flags and the PCID.
constexpr uint64_t kPage = 0x000ffffffffff000;

constexpr GroupInfo kCr3Group{"cr3", "Address spaces (cr3)", SectionLevel::kVcpu};

class GuestCr3 final : public Mergeable<GuestCr3> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmCrWrite);
    subscriptions.Record(Event::kShadowPreallocUnpin);
    subscriptions.Entries();
  }

  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr) return;
    const trace::Record& record = attributed.record;
    if (record.event == Event::kShadowPreallocUnpin) {
      Vcpu& vcpu = vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
      ++At(vcpu, {record.payload.Word64(0) << 12, 0}).unpins;
    } else if (record.payload.Word(0) == kCr3) {
      OnWrite(attributed);
    }
  }

  void OnEntry(const VcpuTrack& track, Tsc /*at*/) override {
    Vcpu& vcpu = vcpus_.At(track.index, track.ref);
    vcpu.Charge(track);
    vcpu.current = vcpu.next;
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    // A write may have come before.
    for (const auto& track : timeline.vcpus()) track->AwaitEntry();
  }
  void StopCounting(const correlate::Timeline& timeline) override {
    for (const auto& track : timeline.vcpus()) {
      if (track->in_guest + track->in_hypervisor == 0 || IsIdle(track->ref)) continue;
      vcpus_.At(track->index, track->ref).Charge(*track);
    }
  }
  void Merge(GuestCr3& earlier) {
    budget_ = earlier.budget_;
    vcpus_.MergeFrom(earlier.vcpus_, [this](Vcpu& vcpu, Vcpu& before) {
      before.current->Add(vcpu.before);
      before.next->Add(vcpu.before_next);
      const std::optional<TableKey> current = vcpu.KeyOf(vcpu.current);
      const std::optional<TableKey> next = vcpu.KeyOf(vcpu.next);
      // The earlier spaces keep their addresses.
      vcpu.spaces.Prepend(
          before.spaces, kMaxEntries, budget_,
          [](Space& space, const Space& more) { space.Add(more); },
          [](const TableKey& /*key*/) { return kOthers; });
      const auto found = [&](const std::optional<TableKey>& key, Space* own) {
        if (key) return &At(vcpu, *key);
        Space* inherited = own == &vcpu.before ? before.current : before.next;
        return before.IsOwn(inherited) ? own : inherited;
      };
      vcpu.current = found(current, vcpu.current);
      vcpu.next = found(next, vcpu.next);
    });
  }

  std::vector<EntryBudget*> Budgets() override { return {&budget_}; }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kCr3Group}; }
  void DescribeVcpu(VcpuRef ref, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr) return;
    std::vector<std::pair<TableKey, const Space*>> sorted;
    bool written = false;
    vcpu->spaces.ForEach([&](const TableKey& key, const Space& space) {
      sorted.emplace_back(key, &space);
      written = written || space.switches > 0;
    });
    if (!written) return;
    MetricGroup& group = out.AddGroup(kCr3Group);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(a.first.tag, b.second->guest, a.first.number) <
             std::make_tuple(b.first.tag, a.second->guest, b.first.number);
    });
    for (const auto& [key, space] : sorted) {
      MetricRow row{key == kOthers ? "(others)" : fmt::format("0x{:x}", key.number), {}, {}};
      row.Add("switches", MetricUnit::kCount, space->switches);
      row.Add("guest_cycles", MetricUnit::kCycles, space->guest);
      row.Add("hypervisor_cycles", MetricUnit::kCycles, space->hypervisor);
      if (space->unpins > 0) row.Add("unpins", MetricUnit::kCount, space->unpins);
      group.rows.push_back(std::move(row));
    }
  }

 private:
  static constexpr uint32_t kMaxEntries = 4096;
  static constexpr TableKey kOthers{0, 1};
  struct Space {
    uint64_t switches = 0;
    Cycles guest = 0;
    Cycles hypervisor = 0;
    uint64_t unpins = 0;

    void Add(const Space& more) {
      switches += more.switches;
      guest += more.guest;
      hypervisor += more.hypervisor;
      unpins += more.unpins;
    }
  };
  struct Vcpu {
    BoundedTable<Space> spaces;
    // Stand for the two below as they were when the counting began; with the trace, for none.
    Space before;
    Space before_next;
    Space* current = &before;
    Space* next = &before_next;  // space from the next VMENTRY on
    Cycles charged_guest = 0;
    Cycles charged_hypervisor = 0;

    // Adds the vCPU's run time since the last call to its space.
    void Charge(const VcpuTrack& track) {
      current->guest += track.in_guest - std::exchange(charged_guest, track.in_guest);
      current->hypervisor +=
          track.in_hypervisor - std::exchange(charged_hypervisor, track.in_hypervisor);
    }
    bool IsOwn(const Space* space) const { return space == &before || space == &before_next; }
    std::optional<TableKey> KeyOf(const Space* wanted) const {
      std::optional<TableKey> found;
      spaces.ForEach([&](const TableKey& key, const Space& space) {
        if (&space == wanted) found = key;
      });
      return found;
    }
  };

  Space& At(Vcpu& vcpu, const TableKey& key) {
    return key == kOthers ? vcpu.spaces.AtOverBudget(kOthers)
                          : vcpu.spaces.At(key, kOthers, kMaxEntries, budget_);
  }

  void OnWrite(const AttributedRecord& attributed) {
    const trace::Record& record = attributed.record;
    const uint64_t value =
        trace::Is64(record.id) ? record.payload.Word64(1) : record.payload.Word(1);
    Vcpu& vcpu = vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    vcpu.next = &At(vcpu, {value & kPage, 0});
    ++vcpu.next->switches;
    attributed.vcpu->AwaitEntry();
  }

  PerVcpu<Vcpu> vcpus_;
  EntryBudget budget_{1 << 16, 64};
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestCr3() { return std::make_unique<GuestCr3>(); }

}  // namespace xenoscope::analysis
