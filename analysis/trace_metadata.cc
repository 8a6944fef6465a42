#include "analysis/trace_metadata.h"

#include "trace/probe.h"

namespace xenoscope::analysis {

TraceMetadata ProbeTraceMetadata(const trace::TraceFile& file, const TraceHints& hints) {
  const trace::Probe probe = trace::ProbeTrace(file);
  TraceMetadata metadata{hints.dialect.CompletedBy(probe.dialect), {}, {}, hints.resolver};
  metadata.clock = hints.clock.value_or(probe.ClockOr());
  return metadata;
}

}  // namespace xenoscope::analysis
