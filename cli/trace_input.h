// What a reading command is pointed at, a recording or a bare xentrace file, and the options that
// say of it what it does not say itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "cli/options.h"
#include "recording/recording.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

struct TraceOptions {
  std::string input = "xenoscope.xeno";
  // What the user said; it goes before what is recorded, and that before what the trace shows.
  std::optional<Clock> clock;
  trace::Dialect dialect;
  std::map<PcpuId, int64_t> tsc_offsets;  // to be added to the TSCs of these
};

// Adds INPUT, --cpu-hz, --vendor, --xen and --tsc-offset to a command. `options` must outlive it.
void AddTraceOptions(Command command, TraceOptions& options);

struct TraceInput {
  // Empty for a bare trace.
  std::optional<recording::Recording> recording;
  // Keeps a decompressed trace alive.
  std::optional<recording::PlainFile> plain_file;
  trace::TraceFile trace;
  // What the user said or the recording knows; nothing where only the trace can tell.
  std::optional<Clock> clock;
  trace::Dialect dialect;

  // Null for a bare trace.
  const recording::RecordingInfo* info() const { return recording ? &recording->info() : nullptr; }
  // The domain's name, or empty.
  std::string DomainName(DomainId domain) const;
};

// What the recording knows of its trace's dialect.
trace::Dialect RecordedDialect(const recording::RecordingInfo& info);

// Prints what the recording warns of to stderr. Errors: those of opening either; an offset of a
// pCPU that is not in the trace.
absl::StatusOr<TraceInput> OpenTraceInput(const TraceOptions& options);

}  // namespace xenoscope::cli
