// Totals of `xenoscope stat` for Xen's domains: estimated from samples, with the run time of vCPUs
// that Xen counts.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/event_totals.h"
#include "recording/info.h"
#include "sampler/event_spec.h"

namespace xenoscope::cli {

struct StatSampling {
  std::vector<sampler::EventSpec> events;
  profile::TotalsBy by = profile::TotalsBy::kAll;
  std::vector<std::string> domains;  // names or numbers; none: all
  std::vector<std::string> command;  // none: until a signal, or for `duration`
  std::optional<std::chrono::nanoseconds> duration;
};

struct SampledTotals {
  profile::EventTotals totals;
  recording::RecordingInfo info;
  std::vector<std::string> notes;
  int exit_status = 0;  // of the command
};

// Records samples of all domains while the command runs, into a recording that is removed, and
// returns their totals. Errors: those of recording.
absl::StatusOr<SampledTotals> SampleTotals(const StatSampling& request);

// Returns whether Linux counts all of the events itself, without the processor's counters.
bool AreOfLinux(const std::vector<sampler::EventSpec>& events);

}  // namespace xenoscope::cli
