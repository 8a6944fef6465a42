// `xenoscope threads --path`: the critical path of a thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "cli/kernel_traces.h"
#include "recording/info.h"
#include "report/threads/threads_view.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

struct PathRequest {
  std::string thread;  // DOMAIN/TID
  TscRange range;
  std::string format = "text";
};

// Returns the path of the thread in the format, by events of `kernels` and the trace `xen`, which
// is null where there is none. Errors: NotFound: the domain, or the thread, has no events; those of
// FollowThreads and PathFinder::Find.
absl::StatusOr<std::string> ThreadPath(const PathRequest& request, const KernelTraces& kernels,
                                       const trace::TraceFile* xen,
                                       const recording::RecordingInfo& info, Clock clock,
                                       const report::ThreadsOptions& shown);

}  // namespace xenoscope::cli
