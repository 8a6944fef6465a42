// Exports a recording's kernels and Xen's trace for trace-cmd, KernelShark and Trace Compass.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/tsc.h"
#include "cli/kernel_traces.h"
#include "guests/threads/thread_states.h"
#include "profile/trace_input.h"
#include "recording/recording.h"

namespace xenoscope::cli {

// Makes the directory, with a trace.dat of each kernel and, if `input` has a trace, one of Xen.
// `domains` have followed all events of `kernels`. Says on stderr how to open them. Errors
// (FailedPrecondition): the directory exists; those of writing.
absl::Status ExportTraceDat(const std::string& directory, const recording::Recording& recording,
                            const profile::TraceInput* input, const KernelTraces& kernels,
                            std::span<const guests::ThreadStates> domains, Clock clock);

}  // namespace xenoscope::cli
