// Finds the dialect and the clock of a trace from a bounded part of it, before it is read as a
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/tsc.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {

struct Probe {
  Dialect dialect;
  std::optional<ClockEstimate> clock;
  std::optional<Tsc> first_tsc;  // the time of the earliest record

  // Returns the estimated clock, or `assumed` where there is no estimate.
  Clock ClockOr(Clock assumed = {}) const {
    return clock ? Clock{clock->hz, ClockSource::kEstimated} : assumed;
  }
};

// Reads windows of all pCPUs, spread over the whole file, at most about `max_bytes`: this takes
// some milliseconds. The vendor may stay unknown if guests ran only in the parts that are not read.
[[nodiscard]] Probe ProbeTrace(const TraceFile& file, uint64_t max_bytes = uint64_t{4} << 20);

// Returns what the first record that shows a vendor says of the dialect; its vendor is unknown if
// none does. Reads 1, 2, 4, ... windows of each pCPU in turn, until it has found it, or has read
// `most_bytes`.
[[nodiscard]] Dialect FindVendor(const TraceFile& file, uint64_t most_bytes = UINT64_MAX);

// Returns how many domains, without the idle one, are seen to have vCPUs where the trace is looked
// at; never more than `enough`. Looks at a quarter of a megabyte, and at four megabytes where this
// shows a third of `enough`.
[[nodiscard]] size_t CountDomains(const TraceFile& file, size_t enough);

// Returns the time of the last item, or 0 if there is none. Reads the last window of each pCPU.
[[nodiscard]] Tsc LastTsc(const TraceFile& file);

}  // namespace xenoscope::trace
