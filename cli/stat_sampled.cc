#include "cli/stat_sampled.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/domain_names.h"
#include "cli/scratch_directory.h"
#include "cli/stat_run_times.h"
#include "profile/trace_input.h"
#include "recording/recording.h"
#include "sampler/perf/perf_events.h"
#include "sampler/recorder.h"
#include "trace/event_mask.h"

namespace xenoscope::cli {
namespace {

// Returns the totals of the recording at `path`. Adds warnings about it to `notes`.
absl::StatusOr<profile::EventTotals> Estimate(const std::string& path, profile::TotalsBy by,
                                              const std::vector<DomainId>& domains,
                                              std::vector<std::string>& notes) {
  if (by != profile::TotalsBy::kPcpu) {
    XENOSCOPE_ASSIGN_OR_RETURN(const recording::Recording recording,
                               recording::Recording::Open(path));
    return profile::EstimateTotals(recording, by, domains);
  }
  profile::TraceRequest request;
  request.path = path;
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input,
                             profile::OpenTraceInput(request, notes));
  return profile::EstimateTotalsOfPcpus(input);
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
  record.on_began = [&run_times] { run_times.Begin(); };
  record.on_ending = [&run_times] { run_times.End(); };
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::RecordResult recorded,
                             sampler::Record(record, [](const sampler::Progress&) {}));
  XENOSCOPE_RETURN_IF_ERROR(recorded.status);
  SampledTotals sampled;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(&recorded.info, request.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals,
                             Estimate(record.output, request.by, domains, sampled.notes));
  Append(run_times.Totals(request.by, domains), sampled.totals);
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
