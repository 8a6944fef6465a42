// The options of commands that read a trace: its path, and facts that it does not contain.
#pragma once

#include "absl/status/statusor.h"
#include "cli/options.h"
#include "profile/trace_input.h"
#include "trace/unread_counts.h"

namespace xenoscope::cli {

inline constexpr const char* kDefaultRecording = "xenoscope.xeno";

// Adds INPUT, --cpu-hz, --vendor, --xen and --tsc-offset to a command. `request` must outlive it.
void AddTraceOptions(Command command, profile::TraceRequest& request);

// Opens the trace, and prints warnings about the recording to stderr. Errors: as
// profile::OpenTraceInput.
absl::StatusOr<profile::TraceInput> OpenTraceInput(const profile::TraceRequest& request);

// Says on stderr what of a trace could not be read, if there is anything.
void WarnOfUnread(const trace::UnreadCounts& unread);

}  // namespace xenoscope::cli
