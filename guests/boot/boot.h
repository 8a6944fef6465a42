// Where the time of a domain's boot went: the phases that its kernel's events show, and what its
// vCPU did in them by Xen's trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/boot/boot_phases.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {

// What the vCPU does on which the thread is that boots.
enum class BootState : uint8_t {
  kGuest,     // runs, and executes the guest; of a PV guest, its hypercalls are part of it
  kXen,       // runs, and Xen handles a VM exit for it (HVM, PVH)
  kStolen,    // waits for a pCPU
  kBlocked,   // waits for an interrupt
  kLost,      // records of Xen's trace were lost
  kUntraced,  // Xen's trace does not say
};
inline constexpr size_t kBootStates = 6;

struct BootExit {
  uint32_t reason = 0;  // the vendor's
  bool nested = false;
  Cycles time = 0;
  uint64_t exits = 0;
};

struct BootTimes {
  std::array<Cycles, kBootStates> states{};  // by BootState
  std::vector<BootExit> exits;  // kXen by reason, the longest first; the way back in has none

  [[nodiscard]] Cycles operator[](BootState state) const {
    return states.at(static_cast<size_t>(state));
  }
  [[nodiscard]] Cycles Sum() const;
};

// A phase with its times, which add up to its length.
struct BootPart {
  std::string name;
  TscRange when;
  bool is_level = false;   // of initcalls
  uint64_t initcalls = 0;  // that the thread that boots called in it
  BootTimes times;
};

struct Boot {
  // Contiguous: "build" from the domain's creation (or from where the trace first has it) until its
  // vCPU 0 first ran; "entry" until the first event of its kernel; then the phases.
  std::vector<BootPart> parts;
  static constexpr size_t kPartsBefore = 2;  // of `parts`, before the kernel's first event
  // Whether the trace has the domain before it first ran.
  bool begins_in_trace = false;
  BootPhases kernel;
  // By initcall: the times of those that the thread that boots called; of others, nothing.
  std::vector<BootTimes> initcall_times;
};

// Joins the phases with Xen's trace. Errors (Internal): a part's times are more than its length.
// One pass over the trace up to the end of the boot, O(log(phases + initcalls)) for each segment.
absl::StatusOr<Boot> FollowBoot(DomainId domain, BootPhases phases, const trace::TraceFile& xen);

}  // namespace xenoscope::guests
