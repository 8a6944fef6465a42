// The system calls of domains' threads as a table.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns the name of a system call of x86-64 Linux; its number where it has none.
[[nodiscard]] std::string SyscallName(uint64_t number);

// Returns the system calls, the longest time first, with what threads did during them: of the time
// of a call, the states are all. Times are in seconds of `clock`. O(result log result).
[[nodiscard]] Table SyscallsTable(std::span<const guests::ThreadStates> domains,
                                  const std::function<std::string(DomainId)>& name_of, Clock clock,
                                  const ThreadsOptions& options);

}  // namespace xenoscope::report
