#include "cli/stat_sampled.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/domain_names.h"
#include "cli/scratch_directory.h"
#include "cli/stat_run_times.h"
#include "recording/recording.h"
#include "sampler/perf/perf_events.h"
#include "sampler/recorder.h"

namespace xenoscope::cli {
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
  record.on_began = [&run_times] { run_times.Begin(); };
  record.on_ending = [&run_times] { run_times.End(); };
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::RecordResult recorded,
                             sampler::Record(record, [](const sampler::Progress&) {}));
  XENOSCOPE_RETURN_IF_ERROR(recorded.status);
  SampledTotals sampled;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(&recorded.info, request.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::Recording recording,
                             recording::Recording::Open(record.output));
  XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals,
                             profile::EstimateTotals(recording, request.by, domains));
  Append(run_times.Totals(request.by, domains), sampled.totals);
  sampled.info = std::move(recorded.info);
  sampled.notes = std::move(recorded.notes);
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
