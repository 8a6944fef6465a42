// Where the time of a domain's boot went: the phases that its kernel's events show, and what its
// vCPU did in them by Xen's trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/boot/boot_phases.h"
#include "guests/phases/phase_switches.h"
#include "guests/phases/phase_times.h"
#include "trace/trace_file.h"
#include "trace/unread_counts.h"

namespace xenoscope::guests {

struct Boot {
  // Contiguous: "build" from the domain's creation (or from where the trace first has it) until its
  // vCPU 0 first ran; "entry" until the first event of its kernel; then the phases.
  // Their times add up to their lengths: they are of the vCPU on which the thread is that boots.
  std::vector<Phase> phases;
  static constexpr size_t kPhasesBefore = 2;  // of `phases`, before the kernel's first event
  // By phase: the initcalls that the thread that boots called in it; nothing: it is no level.
  std::vector<std::optional<uint64_t>> initcalls;
  // Whether the trace has the domain before it first ran.
  bool begins_in_trace = false;
  BootPhases kernel;
  trace::UnreadCounts unread;  // of the trace, up to the end of the boot
  // By initcall: the times of those that the thread that boots called; of others, nothing.
  std::vector<PhaseTimes> initcall_times;
};

// Joins the phases with Xen's trace. Errors (Internal): a phase's times are more than its length.
// One pass over the trace up to the end of the boot, O(log(phases + initcalls)) for each segment.
absl::StatusOr<Boot> FollowBoot(DomainId domain, BootPhases phases, const trace::TraceFile& xen);

// Returns the phases as threads of the vCPU on which the thread is that boots. O(phases + moves).
[[nodiscard]] PhaseSwitches SwitchesOf(DomainId domain, const Boot& boot);

}  // namespace xenoscope::guests
