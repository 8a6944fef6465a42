// Opens the trace of a recording, or a bare file of xentrace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/recording.h"
#include "trace/dialect.h"
#include "trace/event_mask.h"
#include "trace/figures.h"
#include "trace/trace_file.h"

namespace xenoscope::profile {

// The trace to read, and what the user says about it. The user's word has priority over what was
// recorded, and that over what the trace shows.
struct TraceRequest {
  std::string path;  // path of a recording or of a file of xentrace
  std::optional<Clock> clock;
  trace::Dialect dialect;
  std::map<PcpuId, int64_t> tsc_offsets;  // cycles, to be added to the TSCs of these pCPUs
};

struct TraceInput {
  // Empty for a bare trace.
  std::optional<recording::Recording> recording;
  // Keeps a decompressed trace alive.
  std::optional<recording::PlainFile> plain_file;
  trace::TraceFile trace;
  // The user's or the recording's clock; empty where only the trace can show it.
  std::optional<Clock> clock;
  trace::Dialect dialect;
  // The events that were recorded; empty where the recording does not say, and for a bare trace.
  std::optional<trace::EventMask> event_mask;

  // Null for a bare trace.
  const recording::RecordingInfo* info() const { return recording ? &recording->info() : nullptr; }
  // Returns the name of the domain; "" where it is not known.
  std::string DomainName(DomainId domain) const;
  // Returns whether the events that the figure needs were recorded; true where that is not known.
  bool Has(trace::Figure figure) const;
  // Returns a sentence about the figures of `wanted` for which no events were recorded; "" where
  // there are none or the events are not known.
  std::string MissingFigures(std::span<const trace::Figure> wanted) const;
};

// Opens the trace. Adds warnings about the recording to `warnings`, one line each, even when its
// trace cannot be opened. Errors: those of opening either; an offset of a pCPU that is not in the
// trace.
absl::StatusOr<TraceInput> OpenTraceInput(const TraceRequest& request,
                                          std::vector<std::string>& warnings);

// Returns what the recording knows about the dialect of its trace.
trace::Dialect RecordedDialect(const recording::RecordingInfo& info);

// Returns `known`, with the vendor from the trace's records where it is unknown. Reads the
// beginning of the trace.
trace::Dialect CompleteDialect(trace::Dialect known, const trace::TraceFile& trace);

}  // namespace xenoscope::profile
