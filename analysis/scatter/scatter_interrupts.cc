// Scatterplots of interrupts: those that Xen handled, and the time that a guest that an interrupt
// woke stayed awake.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/scatter/scatter_registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::TimelineState;
using correlate::VcpuTrack;
using trace::Event;

// The pCPU that handled a physical interrupt.
class IrqScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHwIrqHandled);
  }
  void OnRecord(const AttributedRecord& attributed) override {
    Point(attributed.record.payload.Word(0), attributed.record.tsc, attributed.record.pcpu.value);
  }
  std::string LineName(uint64_t key) const override { return fmt::format("irq {}", key); }
};

// The time from the entry of a woken guest, with the interrupt that woke it, until it blocks again.
class WakeToHaltScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
    subscriptions.Record(Event::kHvmVmentry);
    subscriptions.States();
  }
  void OnRecord(const AttributedRecord& attributed) override {
    if (attributed.vcpu == nullptr || !Wants(attributed.vcpu->ref.domain)) return;
    Wake& wake = wakes_.At(attributed.vcpu->index, attributed.vcpu->ref);
    if (attributed.record.event == Event::kHvmVmentry) {
      if (wake.stage != Stage::kInjected) return;
      wake.stage = Stage::kInGuest;
      wake.entry = attributed.record.tsc;
    } else if (wake.stage == Stage::kWoken) {
      wake.stage = Stage::kInjected;
      wake.vector = attributed.record.payload.Word(0);
    }
  }
  void OnState(const VcpuTrack& vcpu, TimelineState before) override {
    if (!Wants(vcpu.ref.domain)) return;
    Wake& wake = wakes_.At(vcpu.index, vcpu.ref);
    if (vcpu.state == TimelineState::kRunnable && before == TimelineState::kBlocked) {
      wake.stage = Stage::kWoken;
    } else if (vcpu.state == TimelineState::kBlocked) {
      if (wake.stage == Stage::kInGuest && before == TimelineState::kRunning) {
        Point(KeyOf(vcpu.ref, wake.vector), vcpu.since, vcpu.since - wake.entry);
      }
      wake.stage = Stage::kNone;
    } else if (vcpu.state == TimelineState::kLost) {
      wake.stage = Stage::kNone;
    }
  }
  std::string LineName(uint64_t key) const override {
    return fmt::format("{} 0x{:02x}", ToString(VcpuOfKey(key)), key & 0xffff);
  }

 private:
  enum class Stage : uint8_t { kNone, kWoken, kInjected, kInGuest };
  struct Wake {
    Stage stage = Stage::kNone;
    uint32_t vector = 0;
    Tsc entry;
  };
  PerVcpu<Wake> wakes_;
};

}  // namespace

std::unique_ptr<Scatter> MakeIrqScatter(ScatterOptions options) {
  return std::make_unique<IrqScatter>(std::move(options.filter));
}
std::unique_ptr<Scatter> MakeWakeToHaltScatter(ScatterOptions options) {
  return std::make_unique<WakeToHaltScatter>(std::move(options.filter));
}

}  // namespace xenoscope::analysis
