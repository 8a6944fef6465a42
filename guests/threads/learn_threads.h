// What a view of a growing recording keeps of threads from one window to the next one.
#pragma once

#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/thread_states.h"

namespace xenoscope::guests {

// Replaces the threads of `begin` by those of the domain, which began with them and has followed
// all events of its part: but for those that had ended before it. Of threads with one number the
// last one counts. O(threads).
void LearnThreads(const ThreadStates& domain, KernelTraceBegin& begin);

}  // namespace xenoscope::guests
