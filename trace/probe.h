// What a trace tells of itself before anybody reads it whole: its dialect and its clock, from a
// bounded part of it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/tsc.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {

struct Probe {
  Dialect dialect;
  std::optional<ClockEstimate> clock;
  std::optional<Tsc> first_tsc;  // of the earliest record

  // The clock of the estimate, or the assumed one.
  Clock ClockOr(Clock assumed = {}) const {
    return clock ? Clock{clock->hz, ClockSource::kEstimated} : assumed;
  }
};

// Reads windows spread over the whole file, of all pCPUs, at most about `most_bytes` of them: some
// milliseconds. A guest that ran only in the parts left out may leave the vendor unknown.
Probe ProbeTrace(const TraceFile& file, uint64_t most_bytes = uint64_t{4} << 20);

}  // namespace xenoscope::trace
