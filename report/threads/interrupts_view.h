// The handlers of domains' interrupts as a table.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/interrupts.h"
#include "guests/threads/thread_states.h"
#include "report/table/table.h"
#include "report/threads/threads_view.h"

namespace xenoscope::report {

// Returns "irq 24 eth0" or "softirq NET_RX": what a run of the handler is called.
[[nodiscard]] std::string HandlerTitle(const guests::InterruptKey& key);

// Returns the handlers, the longest time first, with what Xen did with their vCPU meanwhile. Times
// are in seconds of `clock`. Of `options`, `by` has no effect. O(result log result).
[[nodiscard]] Table InterruptsTable(std::span<const guests::ThreadStates> domains,
                                    const std::function<std::string(DomainId)>& name_of,
                                    Clock clock, const ThreadsOptions& options);

}  // namespace xenoscope::report
