// The results of making a profile.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/tsc.h"
#include "correlate/cross_checks.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "profile/event_comparison.h"
#include "profile/exit_counts.h"
#include "trace/names.h"

namespace xenoscope::profile {

// The samples of a profile, as far as they are known before they are placed.
struct SampleSet {
  std::string event;                   // text of the event: "cycles (clocked by hpet:500)"
  std::set<std::string> other_events;  // texts of the recording's events that are not shown
  bool is_time = true;                 // whether samples stand for time
  double period = 0;  // counts of the event between two samples; 0: there are several periods
  // Whether the sizes of strata are those of the trace (docs/method.md, section 4.1).
  bool stratified = true;
  bool traced = true;                              // whether the recording has a trace
  Clock clock;                                     // clock of the host
  trace::Vendor vendor = trace::Vendor::kUnknown;  // vendor of the trace that places them
  TscRange sampled;                                // range [begin, end) of sampling
  uint64_t lost_in_buffers = 0;                    // buffer entries that Xen had no room for
  std::vector<std::string> cautions;               // limits of these samples, one sentence each
  EventComparison comparison;                      // of several events; else it has no events
};

// A finished profile.
struct ProfileResults {
  correlate::ProfileResult result;
  std::vector<correlate::ProfileResult> further;    // by each of ProfileColumns::further_by
  std::vector<correlate::ProfileSums> sums;         // by each of ProfileColumns::sums_by
  std::vector<correlate::WaitingSet> waiting_sets;  // indexed by Context::waiting
  correlate::PlacingCounts counts;
  std::vector<correlate::PlacingCheck> placing_checks;  // empty without a trace
  // How often vCPUs left their guests while samples were taken, if rows of the result are of exits
  // (HasExitCounts); in ascending order of vCPUs.
  std::vector<ExitCount> exit_counts;
  std::vector<PvEntries> pv_entries;  // the same of what PV guests did in Xen, by domain and kind
  // Samples that counts.samples does not include.
  uint64_t damaged = 0;  // samples in damaged parts of the files
  uint64_t outside = 0;  // samples outside ProfileRequest::within
  // The first record of the trace that was not read, as it has nothing to do with the time that was
  // chosen. Samples of the trace itself are not in `outside` from there on.
  std::optional<Tsc> unread_from{};
};

}  // namespace xenoscope::profile
