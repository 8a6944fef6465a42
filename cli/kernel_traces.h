// The traces of kernels in a recording, opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/row_key.h"
#include "guests/clock/kernel_clock.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/threads/thread_states.h"
#include "recording/recording.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

// With what the traces point into.
struct KernelTraces {
  std::vector<recording::SampleStream> streams;
  std::deque<guests::KernelTrace> traces;   // none where no kernel's events were recorded
  std::vector<size_t> sources;              // of each trace: an index
  std::vector<guests::KernelClock> clocks;  // of each trace
};

// What a live view keeps of a growing recording, the begin of which it frees.
struct LiveKernels {
  std::vector<uint64_t> pages_begin;             // by source: pages are read from this offset on
  std::vector<guests::KernelTraceBegin> begins;  // by source: what came before
  std::vector<std::string> left_out;             // what could not be read the last time, and why

  // Keeps what the domains have said of their threads, which have followed the traces' events.
  void Learn(const KernelTraces& kernels, std::span<const guests::ThreadStates> domains);
};

// Returns whether one of the columns is known only where a kernel's events say which threads ran.
bool NeedsThreads(const std::vector<correlate::Dimension>& by);

// Opens the traces of dom0's kernel and of guests', and finds their clocks; `xen` is null where
// there is no trace of Xen. A guest's that cannot be read is left out, with a warning on stderr, or
// in `live`. That is null where the whole recording is read, and outlives the result. Errors: those
// of Recording::OpenSamples, and of KernelTrace::Open for dom0's.
absl::StatusOr<KernelTraces> OpenKernelTraces(const recording::Recording& recording,
                                              const trace::TraceFile* xen,
                                              LiveKernels* live = nullptr);

// Says on stderr what is damaged in the trace of the kernel of the domain with this name, if
// anything is.
void WarnOfDamage(std::string_view name, const guests::KernelTraceFaults& faults);

// Says on stderr that the clock of the domain with this name was set, and what contradicts it.
void WarnOfClock(std::string_view name, const guests::KernelClock& clock);

// Returns the domains' threads before their first event. They point into `kernels`.
std::vector<guests::ThreadStates> ThreadsOf(const KernelTraces& kernels);

}  // namespace xenoscope::cli
