#include "analysis/trace_metadata.h"

#include <algorithm>
#include <cstdint>

#include "trace/ordered_stream.h"
#include "trace/probe.h"
#include "trace/windows.h"

namespace xenoscope::analysis {

TraceMetadata ProbeTraceMetadata(const trace::TraceFile& file, const TraceHints& hints) {
  const trace::Probe probe = trace::ProbeTrace(file);
  TraceMetadata metadata{hints.dialect.CompletedBy(probe.dialect), {}, {}, hints.resolver};
  metadata.clock = hints.clock.value_or(probe.ClockOr());
  return metadata;
}

std::optional<TraceMetadata> LikelyTraceMetadata(const trace::TraceFile& file,
                                                 const TraceHints& hints) {
  constexpr uint64_t kMostBytes = uint64_t{4} << 20;
  constexpr uint64_t kMostOfTrace = 16;  // a part of it
  uint64_t bytes = 0;
  for (const trace::PcpuWindows& pcpu : file.index().pcpus) {
    bytes += pcpu.windows.back().end - pcpu.windows.back().begin;
  }
  if (bytes > std::max(kMostBytes, file.bytes().size() / kMostOfTrace)) return std::nullopt;
  const Tsc first = file.Stream().next_tsc();
  if (first == trace::OrderedStream::kEnd) return std::nullopt;
  TraceMetadata metadata = ProbeTraceMetadata(file, hints);
  metadata.range = {first, trace::LastTsc(file)};
  return metadata;
}

}  // namespace xenoscope::analysis
