// The events of a kernel of dom0 or of a guest as a trace.dat: as the kernel wrote them, with their
// times on the host's clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/thread_states.h"

namespace xenoscope::report {

// What the files of one recording have in common.
struct TraceDatOptions {
  Clock clock;
  Tsc zero;  // nanoseconds are since then: nothing is earlier
};

// Returns the number by which the file of the host knows that of the domain.
[[nodiscard]] uint64_t TraceDatId(DomainId domain);

// Writes the file. `threads` has followed all events, so that it has the threads' names.
// `kallsyms` are the kernel's functions, as in TraceDatHead. Events
// that no page of the file holds are left out, and their number is returned. Errors: those of
// writing. O(events).
absl::StatusOr<uint64_t> WriteKernelTraceDat(
    const std::string& path, const guests::KernelTrace& trace, const guests::EventClock& clock,
    const guests::ThreadStates& threads, std::string_view kallsyms, const TraceDatOptions& options);

}  // namespace xenoscope::report
