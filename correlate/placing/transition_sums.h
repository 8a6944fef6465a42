// How long transitions between guest and Xen take, as far as samples have been placed: the weight
// of transitions among the places of a sample in Xen (docs/method.md, sections 3 and 4.3).
#pragma once

#include <cstdint>

#include "base/mode.h"
#include "correlate/context.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

// The time and the samples of one vCPU of an HVM guest.
struct VcpuTransitions {
  double guest_cycles = 0;  // between VMENTRY and VMEXIT
  double xen_cycles = 0;    // running, but not between VMENTRY and VMEXIT; AddSwitch
  double stays = 0;         // between VMENTRY and VMEXIT
  double guest_samples = 0;
  double xen_samples = 0;

  void AddTime(ContextKind kind, const ContextTime& time) {
    const auto cycles = static_cast<double>(time.cycles);
    if (kind == ContextKind::kGuest) {
      guest_cycles += cycles;
      stays += static_cast<double>(time.stays);
    } else if (kind == ContextKind::kExit || kind == ContextKind::kResume) {
      xen_cycles += cycles;
    }
  }
  // Adds time of switches from the vCPU to others: the vCPU's samples have it, its time does not.
  void AddSwitch(Cycles cycles) { xen_cycles += static_cast<double>(cycles); }
  void AddSample(Mode mode) { (mode == Mode::kXen ? xen_samples : guest_samples) += 1; }
};

// The same of all vCPUs.
class TransitionSums {
 public:
  void Add(const VcpuTransitions& vcpu);
  // Returns the mean number of cycles for each stay in a guest: those by which the samples in Xen
  // exceed the time between VMEXIT and VMENTRY. At least 1: a sample in Xen has to be somewhere.
  // `initial` where too few samples say it.
  [[nodiscard]] double CyclesPerStay(double initial) const;

 private:
  double excess_ = 0;  // cycles in Xen by the samples, less those by the trace
  double stays_ = 0;
  double samples_ = 0;
};

}  // namespace xenoscope::correlate
