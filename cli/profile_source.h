// The profile of an input, a recording or a bare trace: what `report` and `annotate` have in
// common.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/instant.h"
#include "cli/recorded_processes.h"
#include "cli/symbol_options.h"
#include "cli/trace_input.h"
#include "correlate/pipeline_observer.h"
#include "recording/recording.h"
#include "report/profile/profile_view.h"
#include "symbolizer/load.h"

namespace xenoscope::cli {

struct ProfileRequest {
  std::string input = "xenoscope.xeno";
  // Samples: "recorded"; of the "trace"; or "auto": the recorded ones, where there are any.
  std::string source = "auto";
  std::string event;  // empty: the first of which there is a sample
  std::optional<Instant> from;
  std::optional<Instant> to;
  SymbolOptions symbols;
};

class ProfileSource {
 public:
  // Prints warnings to stderr. Errors: no samples of the kind that was asked for; those of reading.
  static absl::StatusOr<ProfileSource> Open(const ProfileRequest& request);

  // The profile by the dimensions of `out`, into `out`, which refers to this source.
  // `pipeline_observer`, where there is one, sees it being made.
  absl::Status Profile(const ProfileRequest& request, report::ProfileReport& out,
                       correlate::PipelineObserver* pipeline_observer = nullptr) const;

  // Nothing for a bare trace.
  const std::optional<recording::Recording>& recording() const {
    return input_ ? input_->recording : bare_;
  }
  const RecordedProcesses& processes() const { return processes_; }
  // Of the recording; null for a bare trace.
  const recording::RecordingInfo* info() const {
    return recording() ? &recording()->info() : nullptr;
  }
  // Empty: it has none.
  std::string DomainName(DomainId domain) const;
  symbolizer::DomainSymbols& symbols() const { return *symbols_.resolver; }
  // What is known of the code that runs there; `space` counts in user mode.
  report::CodeLines LinesOf(DomainId domain, Mode mode, AddressSpaceId space,
                            Address address) const;

 private:
  // Finds where kernels were of which only the files are known, and says so on stderr.
  absl::Status FindShifts(const trace::Dialect& dialect, uint16_t event) const;

  bool from_trace_ = false;
  std::optional<recording::Recording> bare_;  // a recording without a trace
  std::optional<TraceInput> input_;
  symbolizer::LoadedSymbols symbols_;
  RecordedProcesses processes_;
};

}  // namespace xenoscope::cli
