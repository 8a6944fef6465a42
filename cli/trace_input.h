// What a reading command is pointed at: a recording, or a bare xentrace file.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/recording.h"
#include "trace/dialect.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

struct TraceInput {
  // Empty for a bare trace.
  std::optional<recording::Recording> recording;
  // Keeps a decompressed trace alive.
  std::optional<recording::Piece> piece;
  trace::TraceFile trace;
  // What the recording knows; nothing for a bare trace.
  std::optional<Clock> clock;
  trace::Dialect dialect;

  // The domain's name, or empty.
  std::string DomainName(DomainId domain) const;
};

// Prints what the recording warns of to stderr. Errors: those of opening either.
absl::StatusOr<TraceInput> OpenTraceInput(const std::string& path);

// "2.3g", "2300m", "2300000000" in Hz. Errors: InvalidArgument.
absl::StatusOr<uint64_t> ParseHz(const std::string& text);

}  // namespace xenoscope::cli
