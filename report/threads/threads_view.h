// The times of domains' threads as a table.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

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

// The function in which a thread, or what rows join, was most, by samples.
struct HotFunction {
  std::string function;
  // Its part of the samples of what it is of, in [0, 1], and the interval of that.
  double share = 0;
  double low = 0;
  double high = 0;
};
// What a function is the hottest of: `label` is the text of a report's row, "web (7)" for a thread
// or process, the name of a container, "" for all of the domain.
struct HotFunctionKey {
  std::optional<DomainId> waiting;  // while a vCPU of this domain waited for the pCPU; none: ever
  DomainId domain;
  std::string label;
  auto operator<=>(const HotFunctionKey&) const = default;
};
using HotFunctions = std::map<HotFunctionKey, HotFunction>;

// Returns who ran while threads waited for a pCPU, or in their kernel's run queue: the longest time
// first. Both sides are joined as ThreadsOptions::by says. The times of one thread and state are
// those of ThreadsTable: what was taken by nobody that is known is in rows without a culprit.
// `functions`, if not null, are those of culprits, while the thread's domain waited where Xen's
// scheduler let them run; those of which nothing but the domain is known have that of the domain.
// Errors (Internal): a thread waited for less time than was taken from it.
[[nodiscard]] absl::StatusOr<Table> CulpritsTable(
    std::span<const guests::ThreadStates> domains,
    const std::function<std::string(DomainId)>& name_of, Clock clock, const ThreadsOptions& options,
    const HotFunctions* functions = nullptr);

}  // namespace xenoscope::report
