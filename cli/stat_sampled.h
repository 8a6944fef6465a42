// Totals of `xenoscope stat` for Xen's domains: estimated from samples, with the run time of vCPUs
// that Xen counts.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profile/event_totals.h"
#include "recording/info.h"
#include "sampler/event_spec.h"

namespace xenoscope::cli {

struct SampledTotals {
  profile::EventTotals totals;
  recording::RecordingInfo info;
  std::vector<std::string> notes;
  double elapsed = 0;   // seconds from the begin to the end of the totals' stretch
  int exit_status = 0;  // of the command
};

struct StatSampling {
  std::vector<sampler::EventSpec> events;
  profile::TotalsBy by = profile::TotalsBy::kAll;
  std::vector<std::string> domains;  // names or numbers; none: all
  std::vector<std::string> command;  // none: until a signal, or for `duration`
  std::optional<std::chrono::nanoseconds> duration;
  // The length of intervals, at least kMinInterval, whose totals `on_interval` gets when they are
  // over; not with kPcpu. Its error ends sampling.
  std::optional<std::chrono::nanoseconds> interval;
  std::function<absl::Status(SampledTotals)> on_interval{};

  static constexpr std::chrono::milliseconds kMinInterval{100};
};

// Records samples of all domains while the command runs, into a recording that is removed, and
// returns their totals: after the last whole interval, if there are intervals. Errors: those of
// recording.
absl::StatusOr<SampledTotals> SampleTotals(const StatSampling& request);

// Returns whether Linux counts all of the events itself, without the processor's counters.
bool AreOfLinux(const std::vector<sampler::EventSpec>& events);

}  // namespace xenoscope::cli
