// The busiest threads of a window of time as a table.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "guests/threads/thread_states.h"
#include "guests/threads/times_within.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns the threads, or what `by` joins, that were on vCPUs or waited for one in the window:
// those first whose vCPUs ran longest for them. Times are parts of the window; several threads
// together may have more than 1. `domains` have followed their events, and `times` has seen these.
// Idle threads are left out, and so are those of other domains than `only`. O(threads log threads).
[[nodiscard]] Table TopThreadsTable(std::span<const guests::ThreadStates> domains,
                                    const guests::TimesWithin& times,
                                    const std::function<std::string(DomainId)>& name_of,
                                    ThreadsBy by, std::optional<DomainId> only = std::nullopt);

}  // namespace xenoscope::report
