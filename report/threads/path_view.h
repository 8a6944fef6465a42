// The critical path of a thread as tables.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/critical_path.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns where the time of the path went: threads (or what `options` joins them to) and their
// states, the longest time first. The times are all of the path's range. O(steps log steps).
[[nodiscard]] Table PathSumsTable(std::span<const guests::PathStep> path,
                                  std::span<const guests::ThreadStates> domains,
                                  const std::function<std::string(DomainId)>& name_of, Clock clock,
                                  const ThreadsOptions& options);

// Returns the steps, in the order of time. They begin in seconds after the path's begin.
[[nodiscard]] Table PathStepsTable(std::span<const guests::PathStep> path,
                                   std::span<const guests::ThreadStates> domains,
                                   const std::function<std::string(DomainId)>& name_of, Clock clock,
                                   const ThreadsOptions& options);

}  // namespace xenoscope::report
