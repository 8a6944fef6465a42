// A phase as a line, for tests.
#pragma once

#include <fmt/format.h>

#include <string>

#include "guests/phases/phase_times.h"

namespace xenoscope::guests {

// "core 2000-2400: guest 300 Xen 100 stolen 0 blocked 0 lost 0 untraced 0".
inline std::string PhaseLine(const Phase& phase) {
  const auto& states = phase.times.states;
  return fmt::format("{} {}-{}: guest {} Xen {} stolen {} blocked {} lost {} untraced {}",
                     phase.name, phase.when.begin.value, phase.when.end.value, states[0], states[1],
                     states[2], states[3], states[4], states[5]);
}

}  // namespace xenoscope::guests
