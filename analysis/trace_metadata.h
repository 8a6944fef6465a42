// Finds a trace's dialect and clock: from what is known beforehand, and for the rest from the first
// records.
#pragma once

#include <optional>

#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// Returns all but the range and the volume, which take a whole pass. Takes some milliseconds.
TraceMetadata ProbeTraceMetadata(const trace::TraceFile& file, const TraceHints& hints);

// Returns the same with the range that the trace has if it ends where the last windows of its pCPUs
// say, as nearly each one does. Nothing if there are no records, or the last windows are so large
// that it would take long.
std::optional<TraceMetadata> LikelyTraceMetadata(const trace::TraceFile& file,
                                                 const TraceHints& hints);

}  // namespace xenoscope::analysis
