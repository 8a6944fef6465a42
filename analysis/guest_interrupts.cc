// Interrupts that Xen injected into each vCPU, by vector, and how long the guest was then busy:
// from the VMENTRY that delivers the first interrupt of its vector to the next halt (running to
// blocked).
//   wake to halt   of the interrupt that was the first after the vCPU was woken;
//                  "alone": no other vector came before the halt
//   intr to halt   of any other interrupt
// These are xenalyze's figures. Percentiles are over time, as there.
#include <fmt/format.h>

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

class GuestInterrupts : public Analysis {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
    subscriptions.Record(Event::kHvmVmentry);
    subscriptions.States();
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
    if (track.state == RunState::kRunnable && before == RunState::kBlocked) {
      vcpus_.At(track.index, track.ref).woken = true;
    } else if (vcpu == nullptr) {
      return;
    } else if (track.state == RunState::kBlocked && before == RunState::kRunning) {
      OnHalt(*vcpu, track);
    } else if (track.state == RunState::kLost || track.state == RunState::kUnknown) {
      Forget(*vcpu);
      vcpu->woken = false;
    }
  }

  void DescribeVcpu(VcpuRef ref, const Facts& /*facts*/, Section& out) const override {
    const Vcpu* vcpu = vcpus_.Find(ref);
    if (vcpu == nullptr || vcpu->vectors == nullptr) return;
    Group& group = out.AddGroup("guest_interrupts", "Interrupts injected, by vector");
    for (size_t number = 0; number < kVectors; ++number) {
      const std::unique_ptr<Vector>& vector = (*vcpu->vectors)[number];
      if (vector == nullptr) continue;
      Row row{fmt::format("vector 0x{:x}", number), {}, {}};
      row.Add("count", Unit::kCount, vector->count);
      if (vector->fake > 0) row.Add("fake", Unit::kCount, vector->fake);
      AddPart(row, "wake to halt alone", vector->wake_to_halt_alone);
      AddPart(row, "wake to halt any", vector->wake_to_halt_any);
      AddPart(row, "intr to halt", vector->intr_to_halt);
      group.rows.push_back(std::move(row));
    }
  }

 private:
  struct Vector {
    uint64_t count = 0;
    uint64_t fake = 0;  // injected for real mode by the emulator
    bool delivered = false;
    Tsc since;  // of the delivery
    TimeStat wake_to_halt_alone;
    TimeStat wake_to_halt_any;
    TimeStat intr_to_halt;
  };
  struct Vcpu {
    std::unique_ptr<std::array<std::unique_ptr<Vector>, kVectors>> vectors;
    bool undelivered = false;         // an interrupt awaits its VMENTRY
    bool woken = false;               // and no interrupt since
    const Vector* wake = nullptr;     // the first after the waking
    std::vector<Vector*> since_halt;  // each once
  };

  void OnInjection(const Moment& moment) {
    Vcpu& vcpu = vcpus_.At(moment.vcpu->index, moment.vcpu->ref);
    if (vcpu.vectors == nullptr) {
      vcpu.vectors = std::make_unique<std::array<std::unique_ptr<Vector>, kVectors>>();
    }
    auto& slot = (*vcpu.vectors)[moment.record.payload.Word(0) % kVectors];
    if (slot == nullptr) slot = std::make_unique<Vector>();
    ++slot->count;
    if (moment.record.payload.Word(1) != 0) ++slot->fake;
    if (vcpu.woken) {
      vcpu.wake = slot.get();
      vcpu.woken = false;
    }
    for (const Vector* known : vcpu.since_halt) {
      if (known == slot.get()) return;
    }
    slot->delivered = false;
    vcpu.since_halt.push_back(slot.get());
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
        vector->intr_to_halt.Add(length);
        continue;
      }
      vector->wake_to_halt_any.Add(length);
      if (alone) vector->wake_to_halt_alone.Add(length);
    }
    Forget(vcpu);
  }

  void Forget(Vcpu& vcpu) {
    vcpu.since_halt.clear();
    vcpu.wake = nullptr;
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
