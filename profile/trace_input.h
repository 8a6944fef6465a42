// A trace that is read: a recording's, or a bare file of xentrace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/recording.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::profile {

// Which trace is read, and what the user says of it. That goes before what is recorded, and that
// before what the trace shows.
struct TraceRequest {
  std::string path;  // of a recording or a file of xentrace
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
  // What the user said or the recording knows; empty where only the trace can show it.
  std::optional<Clock> clock;
  trace::Dialect dialect;

  // Null for a bare trace.
  const recording::RecordingInfo* info() const { return recording ? &recording->info() : nullptr; }
  // The domain's name; empty where it is not known.
  std::string DomainName(DomainId domain) const;
};

// Adds what the recording warns of to `warnings`, a line each, whether its trace can be opened or
// not. Errors: those of opening either; an offset of a pCPU that is not in the trace.
absl::StatusOr<TraceInput> OpenTraceInput(const TraceRequest& request,
                                          std::vector<std::string>& warnings);

// What the recording knows of its trace's dialect.
trace::Dialect RecordedDialect(const recording::RecordingInfo& info);

// What is known of the trace's dialect, and the vendor from its records where that is not known. A
// pass over the trace's beginning.
trace::Dialect CompleteDialect(trace::Dialect known, const trace::TraceFile& trace);

}  // namespace xenoscope::profile
