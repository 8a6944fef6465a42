// Which address spaces (cr3 values) each HVM vCPU ran in: switches, time in the guest and time in
// the hypervisor for it. From the first write to cr3 that Xen sees, which it does for guests with
// shadow page tables; processors with nested paging keep these writes from it.
//
// A write takes effect at the next VMENTRY: the time of the exit in which it was made belongs to
// the address space before.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/bounded_table.h"
#include "analysis/per_vcpu.h"
#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunState;
using correlate::SegmentKind;
using correlate::VcpuTrack;
using trace::Event;

// The page of the top table: bits 12 to 51; the others are flags and the PCID.
constexpr uint64_t kPage = 0x000ffffffffff000;

class GuestCr3 final : public Mergeable<GuestCr3> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmCrWrite, Changes::kState);
    subscriptions.Record(Event::kShadowPreallocUnpin);
    subscriptions.Record(Event::kHvmVmentry, Changes::kState);
    subscriptions.Record(Event::kHvmVmexit);
    subscriptions.Record(Event::kHvmSvmExit);
    subscriptions.States();
  }

  void OnRecord(const Moment& moment) override {
    const trace::Record& record = moment.record;
    if (record.event == Event::kHvmCrWrite) {
      if (record.payload.Word(0) == 3 && moment.vcpu != nullptr) OnWrite(moment);
      return;
    }
    if (vcpus_.Empty() || moment.vcpu == nullptr) [[likely]] {
      return;
    }
    Vcpu* vcpu = vcpus_.Known(moment.vcpu->index);
    if (vcpu == nullptr) return;
    if (record.event == Event::kShadowPreallocUnpin) {
      ++At(*vcpu, record.payload.Word64(0) << 12).unpins;
      return;
    }
    Charge(*vcpu, *moment.vcpu, record.tsc);
    if (record.event == Event::kHvmVmentry) vcpu->current = vcpu->next;
  }

  void OnState(const VcpuTrack& track, RunState before) override {
    Vcpu* vcpu = vcpus_.Known(track.index);
    if (vcpu == nullptr || before != RunState::kRunning) [[likely]] {
      return;
    }
    // Running on, it has a new segment already; nothing is charged for the old one then.
    if (track.state != RunState::kRunning) Charge(*vcpu, track, track.since);
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    vcpus_.ForEach([](VcpuRef /*ref*/, Vcpu& vcpu) {
      vcpu.spaces.ForEach([](const TableKey& /*key*/, Space& space) { space = {}; });
    });
  }
  void Remember(Remembered& out) const override {
    for (const auto& [ref, vcpu] : vcpus_.ByRef()) {
      out.Add(ref);
      RememberSpace(*vcpu, vcpu->current, out);
      RememberSpace(*vcpu, vcpu->next, out);
    }
  }
  void Merge(GuestCr3& earlier) {
    room_ = earlier.room_;
    vcpus_.Absorb(earlier.vcpus_, [this](Vcpu& vcpu, Vcpu& before) {
      vcpu.current = vcpu.next = nullptr;  // the spaces move
      vcpu.spaces.Prepend(
          before.spaces, kMost, room_, [](Space& space, const Space& more) { space.Add(more); },
          [](const TableKey& /*key*/) { return kOthers; });
    });
  }

  void DescribeVcpu(VcpuRef ref, const Facts& /*facts*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr) return;
    Group& group = out.AddGroup("cr3", "Address spaces (cr3)");
    std::vector<std::pair<TableKey, const Space*>> sorted;
    vcpu->spaces.ForEach(
        [&](const TableKey& key, const Space& space) { sorted.emplace_back(key, &space); });
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(a.first.tag, b.second->guest, a.first.number) <
             std::make_tuple(b.first.tag, a.second->guest, b.first.number);
    });
    for (const auto& [key, space] : sorted) {
      Row row{key == kOthers ? "(others)" : fmt::format("0x{:x}", key.number), {}, {}};
      row.Add("switches", Unit::kCount, space->switches);
      row.Add("guest_cycles", Unit::kCycles, space->guest);
      row.Add("hypervisor_cycles", Unit::kCycles, space->hypervisor);
      if (space->unpins > 0) row.Add("unpins", Unit::kCount, space->unpins);
      group.rows.push_back(std::move(row));
    }
  }

 private:
  static constexpr uint32_t kMost = 4096;
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
    Space* current = nullptr;  // null before the first write has taken effect
    Space* next = nullptr;     // from the next VMENTRY on
  };

  static void RememberSpace(const Vcpu& vcpu, const Space* which, Remembered& out) {
    out.Add(which != nullptr);
    vcpu.spaces.ForEach([&out, which](const TableKey& key, const Space& space) {
      if (&space == which) out.Add(key.tag, key.number);
    });
  }

  Space& At(Vcpu& vcpu, uint64_t page) { return vcpu.spaces.At({page, 0}, kOthers, kMost, room_); }

  void OnWrite(const Moment& moment) {
    const trace::Record& record = moment.record;
    const uint64_t value =
        trace::Is64(record.id) ? record.payload.Word64(1) : record.payload.Word(1);
    Vcpu& vcpu = vcpus_.At(moment.vcpu->index, moment.vcpu->ref);
    vcpu.next = &At(vcpu, value & kPage);
    ++vcpu.next->switches;
  }

  // Charges the segment that ends at `at`.
  static void Charge(Vcpu& vcpu, const VcpuTrack& track, Tsc at) {
    if (vcpu.current == nullptr) return;
    const bool guest = track.segment == SegmentKind::kGuest;
    (guest ? vcpu.current->guest : vcpu.current->hypervisor) += at - track.segment_since;
  }

  PerVcpu<Vcpu> vcpus_;
  Room room_{1 << 16};
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestCr3() { return std::make_unique<GuestCr3>(); }

}  // namespace xenoscope::analysis
