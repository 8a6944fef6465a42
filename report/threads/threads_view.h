// The times of domains' threads as a table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"

namespace xenoscope::report {

// What a row stands for.
enum class ThreadsBy : uint8_t { kThread, kProcess, kContainer, kDomain };

// "stolen": what tables call the state.
[[nodiscard]] const char* StateTitle(guests::ThreadState state);

// A column of the time in a state.
struct StateColumn {
  guests::ThreadState state;
  const char* key;
  const char* title;
};
// Returns them, as tables have them.
[[nodiscard]] std::span<const StateColumn> StateColumns();

struct ThreadsOptions {
  ThreadsBy by = ThreadsBy::kThread;
  // For text: columns in which nothing is are left out, and there are footers.
  bool text = false;
  size_t limit = 0;  // the most rows; 0: all
};

// Returns the table: rows by their time on vCPUs, the longest first, without what did not run.
// Times are in seconds of `clock`. O(threads log threads).
[[nodiscard]] Table ThreadsTable(std::span<const guests::ThreadStates> domains,
                                 const std::function<std::string(DomainId)>& name_of, Clock clock,
                                 const ThreadsOptions& options);

// Returns who ran while threads waited for a pCPU, or in their kernel's run queue: the longest time
// first. Both sides are joined as ThreadsOptions::by says. The times of one thread and state are
// those of ThreadsTable: what was taken by nobody that is known is in rows without a culprit.
// Errors (Internal): a thread waited for less time than was taken from it.
[[nodiscard]] absl::StatusOr<Table> CulpritsTable(
    std::span<const guests::ThreadStates> domains,
    const std::function<std::string(DomainId)>& name_of, Clock clock,
    const ThreadsOptions& options);

}  // namespace xenoscope::report
