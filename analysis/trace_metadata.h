// What a trace's dialect and clock are: what is known beforehand and, for the rest, what a look at
// its records tells.
#pragma once

#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// Everything but the range and the volume, which a whole pass finds. Some milliseconds.
TraceMetadata ProbeTraceMetadata(const trace::TraceFile& file, const TraceHints& hints);

}  // namespace xenoscope::analysis
