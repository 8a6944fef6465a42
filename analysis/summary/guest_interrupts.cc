// Interrupts that Xen injected into each vCPU, by vector, and how long the guest was then busy:
// from the VMENTRY that delivers the first interrupt of its vector to the next halt (running to
// blocked).
//   wake to halt   of the interrupt that was the first after the vCPU was woken;
//                  "alone": no other vector came before the halt
//   intr to halt   of any other interrupt
// These are xenalyze's figures. Percentiles are over time, as there. A turn from one halt to the
// next in which the counting began is put together with its beginning in Merge().
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunState;
using correlate::VcpuTrack;
using trace::Event;

constexpr size_t kVectors = 256;

class GuestInterrupts final : public Mergeable<GuestInterrupts> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
    subscriptions.Entries();
    subscriptions.States();
  }

  void OnRecord(const Moment& moment) override {
    if (moment.vcpu == nullptr) return;
    Vcpu& vcpu = vcpus_.At(moment.vcpu->index, moment.vcpu->ref);
    const size_t number = moment.record.payload.Word(0) % kVectors;
    Figures& figures = vcpu.Of(number);
    ++figures.count;
    if (moment.record.payload.Word(1) != 0) ++figures.fake;
    vcpu.turn.Inject(number);
    moment.vcpu->AwaitEntry();
  }

  void OnEntry(const VcpuTrack& track, Tsc at) override {
    vcpus_.At(track.index, track.ref).turn.Enter(at);
  }

  void OnState(const VcpuTrack& track, RunState before) override {
    if (track.ref.domain == kIdleDomain) return;
    if (track.state == RunState::kRunnable && before == RunState::kBlocked) {
      vcpus_.At(track.index, track.ref).turn.woken = Woken::kYes;
      return;
    }
    const bool halts = track.state == RunState::kBlocked && before == RunState::kRunning;
    const bool ends = track.state == RunState::kUnknown;  // its domain does
    if (!halts && !ends && track.state != RunState::kLost) return;
    Vcpu& vcpu = vcpus_.At(track.index, track.ref);
    if (track.state == RunState::kLost) {
      // The clocks start anew with the first interrupt of each vector that is seen again.
      vcpu.turn.Lose();
      return;
    }
    if (halts) Halt(vcpu, track.since);
    vcpu.turn.Renew();
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    with_the_trace_ = false;
    // An interrupt may await it.
    for (const auto& track : timeline.vcpus()) track->AwaitEntry();
  }
  void Merge(GuestInterrupts& earlier) {
    vcpus_.Absorb(earlier.vcpus_, [](Vcpu& vcpu, Vcpu& before) {
      if (vcpu.first_turn) {
        vcpu.Count(before.turn.FollowedBy(*vcpu.first_turn), vcpu.first_halt);
        vcpu.first_turn.reset();
      } else if (vcpu.turn.is_first) {
        vcpu.turn = before.turn.FollowedBy(vcpu.turn);
      }
      if (before.vectors == nullptr) return;
      for (size_t number = 0; number < kVectors; ++number) {
        const std::unique_ptr<Figures>& more = (*before.vectors)[number];
        if (more != nullptr) vcpu.Of(number).Merge(*more);
      }
    });
  }

  void DescribeVcpu(VcpuRef ref, const Facts& /*facts*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr || vcpu->vectors == nullptr) return;
    Group& group = out.AddGroup("guest_interrupts", "Interrupts injected, by vector");
    for (size_t number = 0; number < kVectors; ++number) {
      if ((*vcpu->vectors)[number] == nullptr) continue;
      const Figures& figures = *(*vcpu->vectors)[number];
      Row row{fmt::format("vector 0x{:x}", number), {}, {}};
      row.Add("count", Unit::kCount, figures.count);
      if (figures.fake > 0) row.Add("fake", Unit::kCount, figures.fake);
      AddPart(row, "wake to halt alone", figures.wake_to_halt_alone);
      AddPart(row, "wake to halt any", figures.wake_to_halt_any);
      AddPart(row, "intr to halt", figures.intr_to_halt);
      group.rows.push_back(std::move(row));
    }
  }

 private:
  struct Figures {
    uint64_t count = 0;
    uint64_t fake = 0;  // injected for real mode by the emulator
    TimeStat wake_to_halt_alone;
    TimeStat wake_to_halt_any;
    TimeStat intr_to_halt;

    void Merge(const Figures& more) {
      count += more.count;
      fake += more.fake;
      wake_to_halt_alone.Merge(more.wake_to_halt_alone);
      wake_to_halt_any.Merge(more.wake_to_halt_any);
      intr_to_halt.Merge(more.intr_to_halt);
    }
  };
  enum class Woken : uint8_t { kNo, kYes, kAsBefore };
  struct Delivery {
    size_t number;
    std::optional<Tsc> since;  // not yet: it awaits the VMENTRY
  };
  // What matters from one halt to the next.
  struct Turn {
    std::vector<Delivery> deliveries;  // each vector once
    std::optional<size_t> wake;        // the first after the waking
    Woken woken = Woken::kAsBefore;    // and no interrupt since
    // Of the turn in which the counting began: whether it is that, whether there was a loss in it,
    // its first entry before that, and the interrupt that is the first after the waking if that
    // came before the counting.
    bool is_first = true;
    bool lost = false;
    std::optional<Tsc> first_entry;
    std::optional<size_t> first;

    void Renew() {
      deliveries.clear();
      wake.reset();
      woken = Woken::kNo;
      is_first = false;
    }
    bool Has(size_t number) const {
      return std::any_of(deliveries.begin(), deliveries.end(),
                         [number](const Delivery& known) { return known.number == number; });
    }
    void Inject(size_t number) {
      if (woken == Woken::kYes) wake = number;
      if (woken == Woken::kAsBefore) first = number;
      woken = Woken::kNo;
      if (!Has(number)) deliveries.push_back({number, std::nullopt});
    }
    void Enter(Tsc at) {
      for (Delivery& delivery : deliveries) {
        if (!delivery.since) delivery.since = at;
      }
      if (!first_entry && !lost) first_entry = at;
    }
    void Lose() {
      deliveries.clear();
      lost = true;
      woken = Woken::kNo;
    }
    // The one turn of which this is the beginning and `rest` the end.
    Turn FollowedBy(const Turn& rest) const {
      Turn whole = *this;
      if (rest.lost) whole.Lose();
      if (rest.first_entry) whole.Enter(*rest.first_entry);
      for (const Delivery& delivery : rest.deliveries) {
        if (!whole.Has(delivery.number)) whole.deliveries.push_back(delivery);
      }
      if (rest.wake) {
        whole.wake = rest.wake;
      } else if (rest.first && woken == Woken::kYes) {
        whole.wake = rest.first;
      }
      if (rest.woken != Woken::kAsBefore) whole.woken = rest.woken;
      return whole;
    }
  };
  struct Vcpu {
    std::unique_ptr<std::array<std::unique_ptr<Figures>, kVectors>> vectors;
    Turn turn;
    std::unique_ptr<Turn> first_turn;  // once it is over
    Tsc first_halt;

    Figures& Of(size_t number) {
      if (vectors == nullptr) {
        vectors = std::make_unique<std::array<std::unique_ptr<Figures>, kVectors>>();
      }
      std::unique_ptr<Figures>& slot = (*vectors)[number];
      if (slot == nullptr) slot = std::make_unique<Figures>();
      return *slot;
    }
    // Counts a turn that ended with a halt.
    void Count(const Turn& over, Tsc halt) {
      const bool alone = over.deliveries.size() == 1;
      for (const auto& [number, since] : over.deliveries) {
        if (!since) continue;
        const Cycles length = halt - *since;
        Figures& figures = Of(number);
        if (number != over.wake) {
          figures.intr_to_halt.Add(length);
          continue;
        }
        figures.wake_to_halt_any.Add(length);
        if (alone) figures.wake_to_halt_alone.Add(length);
      }
    }
  };

  void Halt(Vcpu& vcpu, Tsc at) const {
    if (!vcpu.turn.is_first || with_the_trace_) {
      vcpu.Count(vcpu.turn, at);
    } else {
      vcpu.first_turn = std::make_unique<Turn>(std::move(vcpu.turn));
      vcpu.first_halt = at;
    }
  }

  static void AddPart(Row& row, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) row.parts.push_back(Row{name, {}, {}}.Add(stat.Figures()));
  }

  PerVcpu<Vcpu> vcpus_;
  bool with_the_trace_ = true;  // the counting began
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestInterrupts() { return std::make_unique<GuestInterrupts>(); }

}  // namespace xenoscope::analysis
