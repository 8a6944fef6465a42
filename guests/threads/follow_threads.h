// Follows the threads of domains through a recording: their kernels' events and Xen's trace, in one
// order of time.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "guests/threads/thread_states.h"
#include "trace/trace_file.h"
#include "trace/unread_counts.h"

namespace xenoscope::guests {

// Takes all events of the domains, one ThreadStates for each. `xen` is null where there is no
// trace: what vCPUs do is then not known. Returns what of that could not be read. Errors: those of
// ThreadStates::Finish. Time: O(log pCPUs + log CPUs) an event; memory does not grow with the
// length of the recording.
absl::StatusOr<trace::UnreadCounts> FollowThreads(std::span<ThreadStates> domains,
                                                  const trace::TraceFile* xen);

}  // namespace xenoscope::guests
