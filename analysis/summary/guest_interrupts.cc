// Interrupts that Xen injected into each vCPU, by vector, and how long the guest was then busy:
// from the VMENTRY that delivers the first interrupt of its vector to the next halt (running to
// blocked).
//   wake to halt   of the interrupt that was the first after the vCPU was woken;
//                  "alone": no other vector came before the halt
//   intr to halt   of any other interrupt
// These are xenalyze's figures. Percentiles are over time, as there. A wake period from one halt to
// the next in which the counting began is put together with its beginning in Merge().
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

using correlate::TimelineState;
using correlate::VcpuTrack;
using trace::Event;

constexpr size_t kVectors = 256;

constexpr GroupInfo kGuestInterruptsGroup{"guest_interrupts", "Interrupts injected, by vector",
                                          SectionLevel::kVcpu};

class GuestInterrupts final : public Mergeable<GuestInterrupts> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
    subscriptions.Entries();
    subscriptions.States();
  }

  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr) return;
    Vcpu& vcpu = vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    const size_t number = attributed.record.payload.Word(0) % kVectors;
    Counters& counters = vcpu.At(number);
    ++counters.count;
    if (attributed.record.payload.Word(1) != 0) ++counters.fake;
    vcpu.wake_period.Inject(number);
    attributed.vcpu->AwaitEntry();
  }

  void OnEntry(const VcpuTrack& track, Tsc at) override {
    vcpus_.At(track.index, track.ref).wake_period.Enter(at);
  }

  void OnState(const VcpuTrack& track, TimelineState before) override {
    if (track.ref.domain == kIdleDomain) return;
    if (track.state == TimelineState::kRunnable && before == TimelineState::kBlocked) {
      vcpus_.At(track.index, track.ref).wake_period.woken = Woken::kYes;
      return;
    }
    const bool halts = track.state == TimelineState::kBlocked && before == TimelineState::kRunning;
    const bool ends = track.state == TimelineState::kUnknown;  // its domain ends
    if (!halts && !ends && track.state != TimelineState::kLost) return;
    Vcpu& vcpu = vcpus_.At(track.index, track.ref);
    if (track.state == TimelineState::kLost) {
      // Times begin anew with the next interrupt of each vector.
      vcpu.wake_period.Lose();
      return;
    }
    if (halts) Halt(vcpu, track.since);
    vcpu.wake_period.Reset();
  }

  void StartCounting(const correlate::Timeline& timeline) override {
    counts_from_trace_begin_ = false;
    // An interrupt may await the entry.
    for (const auto& track : timeline.vcpus()) track->AwaitEntry();
  }
  void Merge(GuestInterrupts& earlier) {
    vcpus_.MergeFrom(earlier.vcpus_, [](Vcpu& vcpu, Vcpu& before) {
      if (vcpu.first_wake_period) {
        vcpu.Count(before.wake_period.JoinedWith(*vcpu.first_wake_period), vcpu.first_halt);
        vcpu.first_wake_period.reset();
      } else if (vcpu.wake_period.is_first) {
        vcpu.wake_period = before.wake_period.JoinedWith(vcpu.wake_period);
      }
      if (before.vectors == nullptr) return;
      for (size_t number = 0; number < kVectors; ++number) {
        const std::unique_ptr<Counters>& more = (*before.vectors)[number];
        if (more != nullptr) vcpu.At(number).Merge(*more);
      }
    });
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override { return {kGuestInterruptsGroup}; }
  void DescribeVcpu(VcpuRef ref, const TraceMetadata& /*metadata*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr || vcpu->vectors == nullptr) return;
    MetricGroup& group = out.AddGroup(kGuestInterruptsGroup);
    for (size_t number = 0; number < kVectors; ++number) {
      if ((*vcpu->vectors)[number] == nullptr) continue;
      const Counters& counters = *(*vcpu->vectors)[number];
      MetricRow row{fmt::format("vector 0x{:x}", number), {}, {}};
      row.Add("count", MetricUnit::kCount, counters.count);
      if (counters.fake > 0) row.Add("fake", MetricUnit::kCount, counters.fake);
      AddPart(row, "wake to halt alone", counters.wake_to_halt_alone);
      AddPart(row, "wake to halt any", counters.wake_to_halt_any);
      AddPart(row, "intr to halt", counters.intr_to_halt);
      group.rows.push_back(std::move(row));
    }
  }

 private:
  struct Counters {
    uint64_t count = 0;
    uint64_t fake = 0;  // interrupts that the emulator injected for real mode
    TimeStat wake_to_halt_alone;
    TimeStat wake_to_halt_any;
    TimeStat intr_to_halt;

    void Merge(const Counters& more) {
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
    std::optional<Tsc> since;  // nothing: it awaits the VMENTRY
  };
  // The deliveries from one halt to the next.
  struct WakePeriod {
    std::vector<Delivery> deliveries;  // deliveries; each vector once
    std::optional<size_t> wake;        // index of the first delivery after the wake-up
    Woken woken = Woken::kAsBefore;    // state of the wake-up before its first interrupt
    // The fields below describe the wake period in which the counting began: whether this is it,
    // whether it had a loss, its first entry before the counting, and the interrupt that is the
    // first after the waking, if that came before the counting.
    bool is_first = true;
    bool lost = false;
    std::optional<Tsc> first_entry;
    std::optional<size_t> first;

    void Reset() {
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
    // Returns the wake period of which this is the beginning and `rest` the end.
    WakePeriod JoinedWith(const WakePeriod& rest) const {
      WakePeriod whole = *this;
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
    std::unique_ptr<std::array<std::unique_ptr<Counters>, kVectors>> vectors;
    WakePeriod wake_period;
    std::unique_ptr<WakePeriod> first_wake_period;  // set when that period is over
    Tsc first_halt;

    Counters& At(size_t number) {
      if (vectors == nullptr) {
        vectors = std::make_unique<std::array<std::unique_ptr<Counters>, kVectors>>();
      }
      std::unique_ptr<Counters>& slot = (*vectors)[number];
      if (slot == nullptr) slot = std::make_unique<Counters>();
      return *slot;
    }
    // Counts a wake period that ended with a halt.
    void Count(const WakePeriod& over, Tsc halt) {
      const bool alone = over.deliveries.size() == 1;
      for (const auto& [number, since] : over.deliveries) {
        if (!since) continue;
        const Cycles length = halt - *since;
        Counters& counters = At(number);
        if (number != over.wake) {
          counters.intr_to_halt.Add(length);
          continue;
        }
        counters.wake_to_halt_any.Add(length);
        if (alone) counters.wake_to_halt_alone.Add(length);
      }
    }
  };

  void Halt(Vcpu& vcpu, Tsc at) const {
    if (!vcpu.wake_period.is_first || counts_from_trace_begin_) {
      vcpu.Count(vcpu.wake_period, at);
    } else {
      vcpu.first_wake_period = std::make_unique<WakePeriod>(std::move(vcpu.wake_period));
      vcpu.first_halt = at;
    }
  }

  static void AddPart(MetricRow& row, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) row.parts.push_back(MetricRow{name, {}, {}}.Add(stat.Summary()));
  }

  PerVcpu<Vcpu> vcpus_;
  bool counts_from_trace_begin_ = true;  // the counting began
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestInterrupts() { return std::make_unique<GuestInterrupts>(); }

}  // namespace xenoscope::analysis
