#include "guests/phases/phase_switches.h"

#include <utility>

namespace xenoscope::guests {

PhaseSwitches::PhaseSwitches(std::span<const Phase> phases,
                             std::vector<correlate::ThreadSwitch> switches)
    : switches_(std::move(switches)) {
  names_.reserve(1 + phases.size());
  for (const Phase& phase : phases) names_.push_back(phase.name);
}

std::optional<correlate::ThreadSwitch> PhaseSwitches::Next(Tsc until) {
  if (next_ == switches_.size() || switches_[next_].at >= until) return std::nullopt;
  return switches_[next_++];
}

}  // namespace xenoscope::guests
