// What a trace may ask for. Beyond, it is refused: figures would be wrong, or memory without end.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// After a pass. Errors (InvalidArgument), with the byte: more vCPUs than
// correlate::Timeline::kMaxVcpus; times so far apart that sums over vCPUs would not fit in 64
// bits, which no host lives to see.
absl::Status CheckLimits(const trace::TraceFile& file, const correlate::TimelineFaults& faults,
                         uint64_t vcpus, TscRange range);

}  // namespace xenoscope::analysis
