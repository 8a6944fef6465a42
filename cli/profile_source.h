// The profile of an input, a recording or a bare trace: what `report` and `annotate` have in
// common.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/instant.h"
#include "cli/symbol_options.h"
#include "cli/trace_options.h"
#include "correlate/pipeline_observer.h"
#include "profile/code_lines.h"
#include "profile/profiler.h"
#include "profile/recorded_processes.h"
#include "profile/trace_input.h"
#include "recording/recording.h"
#include "report/profile/profile_view.h"
#include "symbolizer/load.h"

namespace xenoscope::cli {

// What options say of a profile.
struct ProfileOptions {
  std::string input = kDefaultRecording;
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
  static absl::StatusOr<ProfileSource> Open(const ProfileOptions& options);

  // The profile by `columns`, into `out`, which refers to this source. `observer`, where there is
  // one, sees it being made; by then `out` has names and the sample set.
  absl::Status Profile(const ProfileOptions& options, profile::ProfileColumns columns,
                       report::ProfileReport& out,
                       correlate::PipelineObserver* observer = nullptr) const;

  // Nothing for a bare trace.
  const std::optional<recording::Recording>& recording() const {
    return input_ ? input_->recording : bare_;
  }
  const profile::RecordedProcesses& processes() const { return processes_; }
  // Of the recording; null for a bare trace.
  const recording::RecordingInfo* info() const {
    return recording() ? &recording()->info() : nullptr;
  }
  // Empty: it has none.
  std::string DomainName(DomainId domain) const;
  symbolizer::DomainSymbols& symbols() const { return *symbols_.resolver; }
  // What is known of the code that runs there; `space` counts in user mode.
  profile::CodeLines LinesOf(DomainId domain, Mode mode, AddressSpaceId space,
                             Address address) const;

 private:
  // How rows of the profile are named.
  void SetNames(report::ProfileReport& out) const;
  Clock HostClock() const;
  // The part of the recording that was asked for.
  TscRange Selected(const ProfileOptions& options) const;
  // The profiler of the samples that the options ask for. Finds before where kernels were of which
  // only the files are known, and says so on stderr.
  absl::StatusOr<profile::Profiler> MakeProfiler(const ProfileOptions& options,
                                                 profile::ProfileRequest request) const;

  bool from_trace_ = false;
  std::optional<recording::Recording> bare_;  // a recording without a trace
  std::optional<profile::TraceInput> input_;
  symbolizer::LoadedSymbols symbols_;
  profile::RecordedProcesses processes_;
};

}  // namespace xenoscope::cli
