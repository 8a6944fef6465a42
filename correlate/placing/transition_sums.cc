#include "correlate/placing/transition_sums.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

// With fewer samples the initial value is better: the share of Xen is known to 0.05 at best.
constexpr double kMinSamples = 400;

}  // namespace

void TransitionSums::Add(const VcpuTransitions& vcpu) {
  const double samples = vcpu.guest_samples + vcpu.xen_samples;
  if (samples == 0 || vcpu.stays == 0) return;
  const double running = vcpu.guest_cycles + vcpu.xen_cycles;
  excess_ += running * vcpu.xen_samples / samples - vcpu.xen_cycles;
  stays_ += vcpu.stays;
  samples_ += samples;
}

double TransitionSums::CyclesPerStay(double initial) const {
  if (samples_ < kMinSamples) return initial;
  return std::max(1.0, excess_ / stays_);
}

}  // namespace xenoscope::correlate
