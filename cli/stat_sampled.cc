#include "cli/stat_sampled.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/domain_names.h"
#include "cli/scratch_directory.h"
#include "cli/stat_run_times.h"
#include "profile/interval_totals.h"
#include "profile/trace_input.h"
#include "recording/recording.h"
#include "sampler/perf/perf_events.h"
#include "sampler/recorder.h"
#include "sampler/xen/host.h"
#include "trace/event_mask.h"

namespace xenoscope::cli {
namespace {

using recording::Recording;
using std::chrono::steady_clock;

// Returns the totals of the recording at `path`. Adds warnings about it to `notes`.
absl::StatusOr<profile::EventTotals> Estimate(const std::string& path, profile::TotalsBy by,
                                              const std::vector<DomainId>& domains,
                                              std::vector<std::string>& notes) {
  if (by != profile::TotalsBy::kPcpu) {
    XENOSCOPE_ASSIGN_OR_RETURN(const Recording recording, Recording::Open(path));
    return profile::EstimateTotals(recording, by, domains);
  }
  profile::TraceRequest request;
  request.path = path;
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input,
                             profile::OpenTraceInput(request, notes));
  return profile::EstimateTotalsOfPcpus(input);
}

// Estimates the intervals of a recording while it is made.
class SampledIntervals {
 public:
  SampledIntervals(const StatSampling& request, std::string path, StatRunTimes& run_times)
      : request_(request), path_(std::move(path)), run_times_(run_times) {}

  // Sampling has begun, and run times are counted.
  void Begin() {
    begun_ = last_ = steady_clock::now();
    begin_ = sampler::ReadTsc();
  }
  // What was collected before has been written. Gives the interval that had ended before, and ends
  // one that has lasted long enough.
  absl::Status Step() {
    if (ended_) {
      XENOSCOPE_ASSIGN_OR_RETURN(const Recording recording, Recording::Open(path_));
      XENOSCOPE_RETURN_IF_ERROR(GiveEnded(recording));
    }
    if (steady_clock::now() < last_ + *request_.interval) return absl::OkStatus();
    if (!totals_) XENOSCOPE_RETURN_IF_ERROR(ChooseRows());
    run_times_.End();
    ended_ = {sampler::ReadTsc(), NextElapsed(), run_times_.Totals(request_.by, domains_)};
    run_times_.BeginNext();
    return absl::OkStatus();
  }
  // Sampling ends: so does the last interval.
  void End() {
    run_times_.End();
    elapsed_ = NextElapsed();
  }
  // Gives what has not been given of the complete recording, but for the last interval, which is
  // returned.
  absl::StatusOr<SampledTotals> Finish() {
    if (!totals_) XENOSCOPE_RETURN_IF_ERROR(ChooseRows());
    XENOSCOPE_ASSIGN_OR_RETURN(const Recording recording, Recording::Open(path_));
    if (ended_) XENOSCOPE_RETURN_IF_ERROR(GiveEnded(recording));
    SampledTotals sampled;
    XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals, totals_->Rest(recording));
    Append(run_times_.Totals(request_.by, domains_), sampled.totals);
    sampled.elapsed = elapsed_;
    return sampled;
  }

 private:
  // An interval that is over, whose last samples are written in the next step.
  struct Ended {
    Tsc end;
    double elapsed = 0;  // in seconds since sampling began
    profile::EventTotals run_times;
  };

  absl::Status ChooseRows() {
    XENOSCOPE_ASSIGN_OR_RETURN(const Recording recording, Recording::Open(path_));
    XENOSCOPE_ASSIGN_OR_RETURN(domains_, ChooseDomains(&recording.info(), request_.domains));
    totals_.emplace(request_.by, domains_, begin_);
    return absl::OkStatus();
  }
  double NextElapsed() {
    last_ = steady_clock::now();
    return std::chrono::duration<double>(last_ - begun_).count();
  }
  absl::Status GiveEnded(const Recording& recording) {
    SampledTotals sampled;
    XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals, totals_->Next(recording, ended_->end));
    Append(std::move(ended_->run_times), sampled.totals);
    sampled.elapsed = ended_->elapsed;
    sampled.info = recording.info();
    ended_.reset();
    return request_.on_interval(std::move(sampled));
  }

  const StatSampling& request_;
  std::string path_;
  StatRunTimes& run_times_;
  Tsc begin_;
  steady_clock::time_point begun_;
  steady_clock::time_point last_;  // the begin of the interval at hand
  double elapsed_ = 0;             // of the last interval
  std::vector<DomainId> domains_;
  std::optional<profile::IntervalTotals> totals_;  // not set: no interval has ended yet
  std::optional<Ended> ended_;
};

// Returns the totals of all of the recording at `path`.
absl::StatusOr<SampledTotals> TotalsOfAll(const StatSampling& request, const std::string& path,
                                          const recording::RecordingInfo& info,
                                          const StatRunTimes& run_times) {
  SampledTotals sampled;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(&info, request.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals, Estimate(path, request.by, domains, sampled.notes));
  Append(run_times.Totals(request.by, domains), sampled.totals);
  return sampled;
}

}  // namespace

absl::StatusOr<SampledTotals> SampleTotals(const StatSampling& request) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Make("stat"));
  StatRunTimes run_times;
  sampler::RecordRequest record;
  record.output = scratch.path() + "/stat.xeno";
  record.written_by = "xenoscope " XENOSCOPE_VERSION;
  record.command = request.command;
  record.duration = request.duration;
  record.samples.emplace();
  record.samples->source = sampler::SourceKind::kXenoprof;
  record.samples->events = request.events;
  if (request.by == profile::TotalsBy::kPcpu) {
    // Which vCPU ran where is all that is asked for.
    record.trace.emplace();
    record.trace->events = "sched";
    record.trace->event_mask = *trace::ParseEventMask(record.trace->events);
  }
  SampledIntervals intervals(request, record.output, run_times);
  record.on_began = [&run_times, &intervals] {
    run_times.Begin();
    intervals.Begin();
  };
  record.on_ending = [&intervals] { intervals.End(); };
  if (request.interval) record.on_step = [&intervals] { return intervals.Step(); };
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::RecordResult recorded,
                             sampler::Record(record, [](const sampler::Progress&) {}));
  XENOSCOPE_RETURN_IF_ERROR(recorded.status);
  XENOSCOPE_ASSIGN_OR_RETURN(SampledTotals sampled,
                             request.interval
                                 ? intervals.Finish()
                                 : TotalsOfAll(request, record.output, recorded.info, run_times));
  sampled.info = std::move(recorded.info);
  sampled.notes.insert(sampled.notes.begin(), recorded.notes.begin(), recorded.notes.end());
  if (recorded.command_exit) sampled.exit_status = recorded.command_exit->status;
  return sampled;
}

bool AreOfLinux(const std::vector<sampler::EventSpec>& events) {
  return std::ranges::all_of(events, [](const sampler::EventSpec& spec) {
    const auto event = sampler::ResolvePerfEvent(spec);
    return event.ok() && event->attributes.type == PERF_TYPE_SOFTWARE;
  });
}

}  // namespace xenoscope::cli
