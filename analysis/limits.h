// The limits of a trace. A trace beyond them is refused: its figures would be wrong, or memory
// would not suffice.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// Checks a trace after a pass. Errors (InvalidArgument), with the byte: more vCPUs than
// correlate::Timeline::kMaxVcpus; times so far apart that sums of cycles over vCPUs would not fit
// in 64 bits, which no host runs for.
absl::Status CheckLimits(const trace::TraceFile& file, const correlate::TimelineFaults& faults,
                         uint64_t vcpus, TscRange range);

}  // namespace xenoscope::analysis
