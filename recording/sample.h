// One sample as a source gave it: where, whose, and what is known of when.
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"

namespace xenoscope::recording {

struct Sample {
  VcpuRef vcpu;  // in whose buffer it was, or who ran
  Mode mode = Mode::kXen;
  Address address = 0;
  uint16_t event = 0;  // index into RecordingInfo::events
  // When. A source that stamps its samples gives the instant [t, t + 1). xenoprof gives the bracket
  // from the TSC read before the previous drain to the TSC read after the drain that found it; a
  // vCPU that was stopped was so within the one hypercall that read it.
  TscRange when;
  // Its vCPU was stopped within `when` to be read: the address is where it then was, and the mode
  // the guest's, also while Xen was at work for it.
  bool stopped = false;
  // Where it was taken, when the source knows.
  std::optional<PcpuId> pcpu;

  constexpr bool IsInstant() const { return when.Length() == 1; }
};

}  // namespace xenoscope::recording
