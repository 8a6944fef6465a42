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

// Returns what the first exits that show a vendor say of the dialect; its vendor is unknown if none
// does. Reads the trace up to there.
[[nodiscard]] Dialect FindVendor(const TraceFile& file);

// Returns how many domains, without the idle one, are seen to have vCPUs where the trace is looked
// at; never more than `enough`. Looks at a quarter of a megabyte, and at four megabytes where this
// shows a third of `enough`.
[[nodiscard]] size_t CountDomains(const TraceFile& file, size_t enough);

// Returns the time of the last item, or 0 if there is none. Reads the last window of each pCPU.
[[nodiscard]] Tsc LastTsc(const TraceFile& file);

}  // namespace xenoscope::trace
