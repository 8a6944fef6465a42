// Scatterplots of interrupts: those that Xen handled, and how long a guest that an interrupt woke
// stayed awake.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/scatter/scatter_registry.h"

namespace xenoscope::analysis {
namespace {

using correlate::RunState;
using correlate::VcpuTrack;
using trace::Event;

// Which pCPU handled a physical interrupt.
class IrqScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHwIrqHandled);
  }
  void OnRecord(const Moment& moment) override {
    Point(moment.record.payload.Word(0), moment.record.tsc, moment.record.pcpu.value);
  }
  std::string LineName(uint64_t key) const override { return fmt::format("irq {}", key); }
};

// From the entry of a woken guest, with the interrupt that woke it, until it blocks again.
class WakeToHaltScatter : public Scatter {
 public:
  using Scatter::Scatter;
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHvmInjVirq);
    subscriptions.Record(Event::kHvmVmentry);
    subscriptions.States();
  }
  void OnRecord(const Moment& moment) override {
    if (moment.vcpu == nullptr || !Wants(moment.vcpu->ref.domain)) return;
    Wake& wake = wakes_.At(moment.vcpu->index, moment.vcpu->ref);
    if (moment.record.event == Event::kHvmVmentry) {
      if (wake.stage != Stage::kInjected) return;
      wake.stage = Stage::kInGuest;
      wake.entry = moment.record.tsc;
    } else if (wake.stage == Stage::kWoken) {
      wake.stage = Stage::kInjected;
      wake.vector = moment.record.payload.Word(0);
    }
  }
  void OnState(const VcpuTrack& vcpu, RunState before) override {
    if (!Wants(vcpu.ref.domain)) return;
    Wake& wake = wakes_.At(vcpu.index, vcpu.ref);
    if (vcpu.state == RunState::kRunnable && before == RunState::kBlocked) {
      wake.stage = Stage::kWoken;
    } else if (vcpu.state == RunState::kBlocked) {
      if (wake.stage == Stage::kInGuest && before == RunState::kRunning) {
        Point(KeyOf(vcpu.ref, wake.vector), vcpu.since, vcpu.since - wake.entry);
      }
      wake.stage = Stage::kNone;
    } else if (vcpu.state == RunState::kLost) {
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
