// Makes the profile of samples joined with the trace: what `report` prints and `top` draws.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/exit_samples.h"
#include "correlate/pipeline_observer.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "correlate/thread_source.h"
#include "profile/profile_results.h"
#include "profile/recorded_processes.h"
#include "profile/recorded_samples.h"
#include "recording/recording.h"
#include "trace/dialect.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::profile {

// The frames of the code at an address, innermost first, the function itself last; empty where its
// lines are not known. `space` counts in user mode.
using FramesAt = std::function<std::vector<Frame>(DomainId, Mode, AddressSpaceId, Address)>;

// The columns by which the samples of a profile are summed up.
struct ProfileColumns {
  std::vector<correlate::Dimension> by;
  // The same samples by other columns, in the same pass, each as a profile by these alone would
  // have them.
  std::vector<std::vector<correlate::Dimension>> further_by{};
  // Columns by which the samples of the first result are added up, too, into
  // ProfileResults::sums.
  std::vector<std::vector<correlate::Dimension>> sums_by{};
  bool with_parts = false;    // whether rows have their strata
  bool with_inlined = false;  // whether stacks have inlined functions
  // Whether a function that calls itself is one frame of stacks.
  bool fold_recursion = false;
  bool with_totals = false;  // whether rows of the first result have totals
  // Whether the first result has subtotals; its first column is the domain then.
  bool with_subtotals = false;
  correlate::RowChoice choice{};  // which rows subtotals are of
};

// The inputs of a profile.
struct ProfileRequest {
  // What is pointed at outlives the profiler.
  const trace::TraceFile* trace = nullptr;  // trace of the recording; null: there is none
  trace::Dialect dialect;  // dialect of the trace, with the vendor where it is known
  Resolver* resolver = nullptr;
  FramesAt frames_at{};  // empty: no lines are known
  // Says which threads vCPUs ran, for columns that need it; null: nothing does. To be used once.
  correlate::ThreadSource* threads = nullptr;
  correlate::PlacingObservers observers{};
  // The range [begin, end) of TSC cycles: only samples whose brackets lie in it are taken, and only
  // this time of the trace.
  TscRange within{Tsc{0}, trace::OrderedStream::kEnd};
  ProfileColumns columns;
};

class Profiler {
 public:
  // Returns the profiler of recorded samples. The recording and its processes outlive it; `events`
  // are those of ReadEvents. Reads the brackets of all samples. Errors: those of reading the
  // samples.
  static absl::StatusOr<Profiler> OfRecording(ProfileRequest request,
                                              const recording::Recording& recording,
                                              std::span<const recording::EventInfo> events,
                                              const SampleSelection& selection,
                                              const RecordedProcesses& processes);
  // Returns the profiler of the samples in the trace itself. The request has a trace. `clock` is
  // that of the host.
  static Profiler OfTrace(ProfileRequest request, Clock clock);

  // Of the samples in the trace, the end of `sampled` is known after Run; before, it is the end of
  // time or that of the request.
  const SampleSet& sample_set() const { return sample_set_; }

  // Makes the profile in one pass over samples and trace. To be called once. Errors: the status of
  // who sees each step; Internal when rows do not sum to what was added.
  absl::StatusOr<ProfileResults> Run();

 private:
  Profiler(ProfileRequest request, SampleSet sample_set,
           std::unique_ptr<correlate::SampleSource> samples)
      : request_(std::move(request)),
        sample_set_(std::move(sample_set)),
        samples_(std::move(samples)) {}

  using Profiles = std::vector<std::unique_ptr<correlate::Profile>>;

  // Returns the profiles by the request's further columns.
  [[nodiscard]] Profiles FurtherProfiles(const correlate::ProfileOptions& common) const;
  // Both functions place the samples: for `first` by the request's columns, and for each of
  // `further` by its own, so that none changes what another sees.
  void PlaceWithoutTrace(correlate::PlacingObserver& first, const Profiles& further,
                         ProfileResults& results);
  absl::Status PlaceByTrace(correlate::PlacingObserver& first, const Profiles& further,
                            ProfileResults& results);
  // Shows the trace to the observers, on a thread that has ended when the result is gone.
  [[nodiscard]] std::future<void> ObserveMeanwhile(
      std::span<correlate::TraceObserver* const> observers) const;

  // Returns the request's choice, which knows of waiting vCPUs what the placer has found so far.
  [[nodiscard]] correlate::RowChoice Choice() const;

  ProfileRequest request_;
  SampleSet sample_set_;
  std::unique_ptr<correlate::SampleSource> samples_;
  const RecordedSamples* recorded_ = nullptr;     // samples_; null when they are of the trace
  correlate::ExitSamples* from_trace_ = nullptr;  // samples_; null when they are recorded
  const RecordedProcesses* processes_ = nullptr;  // those of recorded_
  Cycles longest_bracket_ = 0;
  const correlate::Placer* placer_ = nullptr;  // while the trace is read
};

}  // namespace xenoscope::profile
