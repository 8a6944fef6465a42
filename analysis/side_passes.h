// Passes over the trace that only some traces need: the comparison of clocks, where runstates
// contradict each other, and the search for the TSCs of guests, where guests wrote events. The
// reason for one is often found early, so that it can be made while the analyses count.
#pragma once

#include <future>
#include <vector>

#include "base/tsc.h"
#include "correlate/clocks.h"
#include "correlate/guest_clocks.h"
#include "correlate/time_spans.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

class SidePasses {
 public:
  // `file` outlives this.
  explicit SidePasses(const trace::TraceFile& file) : file_(&file) {}

  // Begin the pass on a thread of its own, unless it has begun. The threads end before this does.
  // `contradictions` are those that are known (correlate::CompareClocks).
  void BeginSkews(const correlate::TimeSpans& contradictions);
  void BeginGuestClocks();
  // Return what the pass found, once. One that has not begun, or found nothing near the
  // contradictions that were known, is made here.
  [[nodiscard]] std::vector<correlate::ClockSkew> Skews(TscRange range,
                                                        const correlate::TimeSpans& contradictions);
  [[nodiscard]] std::vector<correlate::DomainClock> GuestClocks();

 private:
  const trace::TraceFile* file_;
  TscRange range_;  // the time of the trace, when the comparison of clocks began
  std::future<std::vector<correlate::ClockSkew>> skews_;
  std::future<std::vector<correlate::DomainClock>> guest_clocks_;
};

}  // namespace xenoscope::analysis
