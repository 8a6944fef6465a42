// The traces of kernels in a recording, opened.
#pragma once

#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/thread_states.h"
#include "recording/recording.h"

namespace xenoscope::cli {

// With what the traces point into.
struct KernelTraces {
  std::vector<recording::SampleStream> streams;
  std::deque<guests::KernelTrace> traces;  // none where no kernel's events were recorded
};

// Errors: those of Recording::OpenSamples and KernelTrace::Open.
absl::StatusOr<KernelTraces> OpenKernelTraces(const recording::Recording& recording);

// Returns the domains' threads before their first event. They point into `kernels`.
std::vector<guests::ThreadStates> ThreadsOf(const KernelTraces& kernels);

}  // namespace xenoscope::cli
