// The waits of domains' threads for locks of their kernels as a table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns the type of lock that the flags of contention_begin say, in the words of `perf lock
// contention`; "-": they are not known.
[[nodiscard]] std::string LockType(uint32_t flags);

// Returns the waits by lock, the longest time first, with what threads did during them: of the time
// of a wait, the states are all. Times are in seconds of `clock`. O(result log result).
[[nodiscard]] Table LocksTable(std::span<const guests::ThreadStates> domains,
                               const std::function<std::string(DomainId)>& name_of, Clock clock,
                               const ThreadsOptions& options);

}  // namespace xenoscope::report
