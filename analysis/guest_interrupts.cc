// Interrupts that Xen injected into each vCPU, by vector, and how long the guest was then busy:
// from the VMENTRY that delivers the first interrupt of its vector to the next halt (running to
// blocked).
//   wake to halt   of the interrupt that was the first after the vCPU was woken;
//                  "alone": no other vector came before the halt
//   intr to halt   of any other interrupt
// These are xenalyze's figures. Percentiles are over time, as there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/per_vcpu.h"
#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunState;
using correlate::VcpuTrack;
using trace::Event;

constexpr size_t kVectors = 256;

class GuestInterrupts final : public Mergeable<GuestInterrupts> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq, Changes::kState);
    subscriptions.Record(Event::kHvmVmentry, Changes::kState);
    subscriptions.States(Changes::kState);
  }

  void OnRecord(const Moment& moment) override {
    if (moment.record.event != Event::kHvmVmentry) {
      if (moment.vcpu != nullptr) OnInjection(moment);
    } else if (undelivered_ > 0 && moment.vcpu != nullptr) {
      OnEntry(moment);
    }
  }

  void OnState(const VcpuTrack& track, RunState before) override {
    if (track.ref.domain == kIdleDomain) return;
    Vcpu* vcpu = vcpus_.Known(track.index);
    if (vcpu != nullptr) vcpu->is_hvm = track.kind == correlate::VcpuKind::kHvm;
    if (track.state == RunState::kRunnable && before == RunState::kBlocked) {
      vcpus_.At(track.index, track.ref).woken = true;
    } else if (vcpu == nullptr) {
      return;
    } else if (track.state == RunState::kBlocked && before == RunState::kRunning) {
      OnHalt(*vcpu, track);
    } else if (track.state == RunState::kUnknown) {  // its domain has ended
      Forget(*vcpu);
    } else if (track.state == RunState::kLost) {
      // The clocks start anew with the first interrupt of each vector that is seen again.
      ForgetDeliveries(*vcpu);
      vcpu->woken = false;
    }
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    vcpus_.ForEach([](VcpuRef /*ref*/, Vcpu& vcpu) {
      if (vcpu.vectors == nullptr) return;
      for (const auto& vector : *vcpu.vectors) {
        if (vector != nullptr) vector->figures = {};
      }
    });
  }
  void Remember(Remembered& out) const override {
    for (const auto& [ref, vcpu] : vcpus_.ByRef()) {
      // A PV guest's vCPU has no interrupts that its having been woken would matter for.
      const bool woken = vcpu->woken && vcpu->is_hvm;
      if (!vcpu->undelivered && !woken && vcpu->wake == nullptr && vcpu->since_halt.empty()) {
        continue;
      }
      out.Add(ref, vcpu->undelivered, woken, NumberOf(*vcpu, vcpu->wake));
      for (const Vector* vector : vcpu->since_halt) {
        out.Add(NumberOf(*vcpu, vector), vector->delivered);
        if (vector->delivered) out.Add(vector->since);
      }
    }
  }
  void Merge(GuestInterrupts& earlier) {
    vcpus_.Absorb(earlier.vcpus_, [](Vcpu& vcpu, const Vcpu& before) {
      if (before.vectors == nullptr) return;
      for (size_t number = 0; number < kVectors; ++number) {
        const std::unique_ptr<Vector>& more = (*before.vectors)[number];
        if (more != nullptr) Of(vcpu, number).figures.Merge(more->figures);
      }
    });
  }

  void DescribeVcpu(VcpuRef ref, const Facts& /*facts*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr || vcpu->vectors == nullptr) return;
    Group& group = out.AddGroup("guest_interrupts", "Interrupts injected, by vector");
    for (size_t number = 0; number < kVectors; ++number) {
      const std::unique_ptr<Vector>& vector = (*vcpu->vectors)[number];
      if (vector == nullptr) continue;
      const Figures& figures = vector->figures;
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
  struct Vector {
    bool delivered = false;
    Tsc since;  // of the delivery
    Figures figures;
  };
  struct Vcpu {
    std::unique_ptr<std::array<std::unique_ptr<Vector>, kVectors>> vectors;
    bool is_hvm = false;              // has been seen to be
    bool undelivered = false;         // an interrupt awaits its VMENTRY
    bool woken = false;               // and no interrupt since
    const Vector* wake = nullptr;     // the first after the waking
    std::vector<Vector*> since_halt;  // each once
  };

  static Vector& Of(Vcpu& vcpu, size_t number) {
    if (vcpu.vectors == nullptr) {
      vcpu.vectors = std::make_unique<std::array<std::unique_ptr<Vector>, kVectors>>();
    }
    std::unique_ptr<Vector>& slot = (*vcpu.vectors)[number];
    if (slot == nullptr) slot = std::make_unique<Vector>();
    return *slot;
  }

  // kVectors: none.
  static size_t NumberOf(const Vcpu& vcpu, const Vector* vector) {
    if (vector == nullptr) return kVectors;
    const auto is_it = [vector](const auto& slot) { return slot.get() == vector; };
    return static_cast<size_t>(std::find_if(vcpu.vectors->begin(), vcpu.vectors->end(), is_it) -
                               vcpu.vectors->begin());
  }

  void OnInjection(const Moment& moment) {
    Vcpu& vcpu = vcpus_.At(moment.vcpu->index, moment.vcpu->ref);
    Vector& vector = Of(vcpu, moment.record.payload.Word(0) % kVectors);
    ++vector.figures.count;
    if (moment.record.payload.Word(1) != 0) ++vector.figures.fake;
    if (vcpu.woken) {
      vcpu.wake = &vector;
      vcpu.woken = false;
    }
    for (const Vector* known : vcpu.since_halt) {
      if (known == &vector) return;
    }
    vector.delivered = false;
    vcpu.since_halt.push_back(&vector);
    SetUndelivered(vcpu, true);
  }

  void OnEntry(const Moment& moment) {
    Vcpu* vcpu = vcpus_.Known(moment.vcpu->index);
    if (vcpu == nullptr || !vcpu->undelivered) return;
    for (Vector* vector : vcpu->since_halt) {
      if (vector->delivered) continue;
      vector->delivered = true;
      vector->since = moment.record.tsc;
    }
    SetUndelivered(*vcpu, false);
  }

  void OnHalt(Vcpu& vcpu, const VcpuTrack& track) {
    const bool alone = vcpu.since_halt.size() == 1;
    for (Vector* vector : vcpu.since_halt) {
      if (!vector->delivered) continue;
      const Cycles length = track.since - vector->since;
      if (vector != vcpu.wake) {
        vector->figures.intr_to_halt.Add(length);
        continue;
      }
      vector->figures.wake_to_halt_any.Add(length);
      if (alone) vector->figures.wake_to_halt_alone.Add(length);
    }
    Forget(vcpu);
  }

  void Forget(Vcpu& vcpu) {
    ForgetDeliveries(vcpu);
    vcpu.wake = nullptr;
    vcpu.woken = false;
  }

  void ForgetDeliveries(Vcpu& vcpu) {
    vcpu.since_halt.clear();
    SetUndelivered(vcpu, false);
  }

  void SetUndelivered(Vcpu& vcpu, bool undelivered) {
    undelivered_ += static_cast<int>(undelivered) - static_cast<int>(vcpu.undelivered);
    vcpu.undelivered = undelivered;
  }

  static void AddPart(Row& row, const char* name, const TimeStat& stat) {
    if (stat.count() > 0) row.parts.push_back(Row{name, {}, {}}.Add(stat.Figures()));
  }

  PerVcpu<Vcpu> vcpus_;
  int undelivered_ = 0;  // how many vCPUs are so
};

}  // namespace

std::unique_ptr<Analysis> MakeGuestInterrupts() { return std::make_unique<GuestInterrupts>(); }

}  // namespace xenoscope::analysis
