// Opens a recording or a bare trace as options say, and makes profiles of it: the common part of
// `report`, `diff`, `annotate` and `archive`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/instant.h"
#include "cli/kernel_traces.h"
#include "cli/symbol_options.h"
#include "cli/trace_options.h"
#include "correlate/pipeline_observer.h"
#include "correlate/thread_source.h"
#include "profile/code_lines.h"
#include "profile/profiler.h"
#include "profile/recorded_processes.h"
#include "profile/trace_input.h"
#include "profile/unwound_samples.h"
#include "recording/recording.h"
#include "report/profile/profile_view.h"
#include "symbolizer/load.h"
#include "trace/probe.h"

namespace xenoscope::cli {

// The help of --event, and what its value looks like.
inline constexpr char kEventHelp[] =
    "Event: its name, or cycles:k for one that was counted in kernel mode only (u, k, h as in "
    "record), cycles@perf for that of a source, cycles@agent-3 for that of guest 3, cycles@agent "
    "for those of all guests; default: the first with samples";
inline constexpr char kEventValue[] = "NAME[:ukh][@SOURCE]";

// The options of a profile.
struct ProfileOptions {
  std::string input = kDefaultRecording;
  // The source of samples: "recorded", "trace", or "auto" for the recorded ones if there are any.
  std::string source = "auto";
  std::string event;  // a text of profile::FindEventGroups; empty: the first with a sample
  // Whether events are shown side by side: those that are named in braces or, if none is named,
  // those that have a ratio with the first one.
  bool side_by_side = false;
  // Whether code without a function has the name of its place in its file
  // (ProcessImages::NamePlaces).
  bool name_places = false;
  bool call_chains = false;  // whether callers are needed: stacks are unwound when it is opened
  std::optional<Instant> from;
  std::optional<Instant> to;
  SymbolOptions symbols;
};

class ProfileSource {
 public:
  // Opens the input and its symbols. Prints warnings to stderr. Errors: no samples of the kind that
  // was asked for; those of reading.
  static absl::StatusOr<ProfileSource> Open(const ProfileOptions& options);

  // Writes the profile by `columns` to `out`, which refers to this source. `observers` see how it
  // is made; `out` has names and the sample set before that. `threads`, if not null, stands for the
  // events of kernels that the recording has.
  absl::Status Profile(const ProfileOptions& options, profile::ProfileColumns columns,
                       report::ProfileReport& out, correlate::PlacingObservers observers = {},
                       correlate::ThreadSource* threads = nullptr) const;

  // Returns nothing for a bare trace.
  const std::optional<recording::Recording>& recording() const {
    return input_ ? input_->recording : bare_;
  }
  const profile::RecordedProcesses& processes() const { return processes_; }
  // Returns the recording's info; null for a bare trace.
  const recording::RecordingInfo* info() const {
    return recording() ? &recording()->info() : nullptr;
  }
  // Returns the input's trace of Xen; null without one.
  const trace::TraceFile* trace() const { return input_ ? &input_->trace : nullptr; }
  // Returns the time 0 of what is printed, and of --from and --to: the trace's first record, as in
  // dump; without a trace the time when the recording began.
  Tsc Origin() const;
  // Returns the name of the domain; "" when it has none.
  std::string DomainName(DomainId domain) const;
  symbolizer::DomainSymbols& symbols() const { return *symbols_.resolver; }
  // Returns file and lines of the code at the address; `space` counts in user mode.
  profile::CodeLines LinesOf(DomainId domain, Mode mode, AddressSpaceId space,
                             Address address) const;

 private:
  // Unwinds the recorded stacks.
  absl::Status Unwind();
  // Finds where kernels were whose files are known but not their addresses, from the recorded
  // samples, and prints that to stderr.
  absl::Status FindShifts(const profile::SampleSelection& selection) const;
  // Returns the traces of kernels that the first of the columns need; none where they need none.
  // Further ones see the samples as the first do.
  absl::StatusOr<KernelTraces> KernelsFor(const profile::ProfileColumns& columns) const;
  // Sets the functions that name rows of the profile.
  void SetNames(report::ProfileReport& out) const;
  // Returns the recorded clock; for a bare trace, the one that its records show, as in summary.
  Clock HostClock() const;
  // Returns the dialect of the input's trace, with the vendor that its records show where it is not
  // known otherwise.
  trace::Dialect TraceDialect() const;
  // Returns the choice of samples that was asked for.
  absl::StatusOr<profile::SampleSelection> Select(
      const ProfileOptions& options, std::span<const recording::EventInfo> events) const;
  // Returns InvalidArgument if the range that was asked for leaves nothing of the time in which
  // samples were taken.
  [[nodiscard]] absl::Status CheckSampled(TscRange within, TscRange sampled) const;
  // Returns the range [begin, end) that was asked for. Errors: those of RangeOf.
  absl::StatusOr<TscRange> Selected(const ProfileOptions& options) const;
  // Returns the profiler of the samples that the options ask for. First finds where kernels were
  // whose files are known but not their addresses, and prints that to stderr.
  absl::StatusOr<profile::Profiler> MakeProfiler(const ProfileOptions& options,
                                                 profile::ProfileRequest request) const;

  bool from_trace_ = false;
  std::optional<recording::Recording> bare_;  // a recording without a trace
  std::optional<profile::TraceInput> input_;
  trace::Probe probe_;  // of the input's trace; empty without one
  symbolizer::LoadedSymbols symbols_;
  profile::RecordedProcesses processes_;
  bool found_shifts_ = false;  // whether it was tried to find where kernels were
  profile::UnwindResults unwound_;
};

}  // namespace xenoscope::cli
