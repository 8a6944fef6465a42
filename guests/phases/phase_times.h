// A phase of a domain's boot or shutdown, and what the domain's vCPUs did in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/tsc.h"

namespace xenoscope::guests {

// What a vCPU does.
enum class PhaseState : uint8_t {
  kGuest,     // runs, and executes the guest; of a PV guest, its hypercalls are part of it
  kXen,       // runs, and Xen handles a VM exit for it (HVM, PVH)
  kStolen,    // waits for a pCPU
  kBlocked,   // waits for an interrupt, or is not to run
  kLost,      // records of Xen's trace were lost
  kUntraced,  // Xen's trace does not say
};
inline constexpr size_t kPhaseStates = 6;

struct PhaseExit {
  uint32_t reason = 0;  // the vendor's
  bool nested = false;
  Cycles time = 0;
  uint64_t exits = 0;
};

struct PhaseTimes {
  std::array<Cycles, kPhaseStates> states{};  // by PhaseState
  std::vector<PhaseExit> exits;  // kXen by reason, the longest first; the way back in has none

  [[nodiscard]] Cycles operator[](PhaseState state) const {
    return states.at(static_cast<size_t>(state));
  }
  [[nodiscard]] Cycles Sum() const;
};

struct Phase {
  std::string name;
  TscRange when;
  PhaseTimes times;
};

}  // namespace xenoscope::guests
