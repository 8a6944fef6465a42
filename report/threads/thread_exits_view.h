// What Xen did for domains' threads as a table.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"
#include "trace/names.h"

namespace xenoscope::report {

// Returns why threads were in Xen, the longest time first: VM exits by reason and subreason, whose
// times are those of ThreadsTable in Xen; hypercalls, traps and emulations of PV guests, whose
// times are not known. `vendor` names the exits. O(result log result).
[[nodiscard]] Table ThreadExitsTable(std::span<const guests::ThreadStates> domains,
                                     const std::function<std::string(DomainId)>& name_of,
                                     Clock clock, trace::Vendor vendor,
                                     const ThreadsOptions& options);

}  // namespace xenoscope::report
