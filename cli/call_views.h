// The calls of functions that kernels traced, as `boot` and `threads` show them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "cli/options.h"
#include "guests/threads/call_trees.h"
#include "guests/threads/thread_states.h"
#include "recording/recording.h"
#include "report/calls/call_forest.h"
#include "report/calls/calls_view.h"
#include "report/threads/threads_view.h"

namespace xenoscope::cli {

// What of calls is shown.
struct CallViewOptions {
  bool calls = false;
  bool call_tree = false;
  std::string format = "text";  // text, csv or json
  size_t limit = 0;             // of text
  bool longest_first = false;   // the groups

  [[nodiscard]] bool Wanted() const { return calls || call_tree; }
};

// Returns the names of functions of the domain's kernel; an address where it has none. `symbols`
// outlives the result.
report::CallForest::NameOf KernelFunctionNames(Resolver& symbols, DomainId domain);

// Adds the calls of the domains' threads, joined as `by` says, with the names that the recording's
// symbols have. Returns what the groups are called. Errors: those of LoadSymbols; NotFound: none
// has calls.
absl::StatusOr<report::CallGroups> AddCallsOfThreads(
    const std::vector<guests::ThreadStates>& domains, const recording::Recording& recording,
    const report::ThreadsOptions& shown, report::CallForest& forest);

// Writes the table to stdout.
absl::Status ShowCalls(const report::CallForest& forest, const report::CallGroups& groups,
                       const CallViewOptions& options, Clock clock);

// Says on stderr which calls of the kernel of the domain with this name are not whole, or left out.
void WarnOfCalls(std::string_view name, const guests::CallTrees& calls);

}  // namespace xenoscope::cli
