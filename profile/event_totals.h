// Totals of events by domain, vCPU or pCPU: read from counters, or estimated from samples
// (docs/method.md, section 10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "correlate/event_sums.h"
#include "profile/event_comparison.h"
#include "profile/trace_input.h"
#include "recording/recording.h"

namespace xenoscope::profile {

// How a total is known.
enum class TotalKind : uint8_t {
  kExact,       // a counter counted all of the time, and was read
  kScaled,      // a counter counted a part of the time, as events took turns
  kEstimated,   // samples times the period
  kNotCounted,  // nothing counted it
};
// Returns the word for people and programs: "exact", "scaled", "estimated", "not counted".
[[nodiscard]] const char* ToString(TotalKind kind);

// What totals are of.
enum class TotalsBy : uint8_t { kAll, kDomain, kVcpu, kPcpu };

// The total of an event.
struct EventTotal {
  std::optional<DomainId> domain;  // not set: all domains, or the processes of a command
  std::optional<VcpuId> vcpu;      // not set: all vCPUs
  std::optional<PcpuId> pcpu;      // not set: all pCPUs; of totals by pCPU: it is not known
  size_t event = 0;                // index into EventTotals::events
  TotalKind kind = TotalKind::kNotCounted;
  double count = 0;  // in events; in ns for events of time
  // The 95 % interval of a count that is estimated, or is the mean of several runs.
  bool has_interval = false;
  double low = 0;
  double high = 0;
  double measured = 1;  // the part of the time in which a counter counted, in (0, 1]
  // The ratio of this total to another of the same domain, vCPU and pCPU.
  std::optional<size_t> ratio_column;  // index into EventTotals::ratios
  correlate::RatioEstimate ratio;
};

struct TotalEvent {
  std::string name;
  bool is_time = false;  // counts are ns
  double seconds = 0;    // length of the stretch in which it was counted; 0: EventTotals::seconds
};

// The totals of a stretch of time.
struct EventTotals {
  std::vector<TotalEvent> events;
  std::vector<RatioColumn> ratios;  // of the numbers of events when they were added
  std::vector<EventTotal> totals;   // by domain, vCPU, pCPU and event
  double seconds = 0;               // length of the stretch
  std::vector<std::string> cautions;
};

// A count that was read, of one CPU or of a command.
struct CountedPart {
  size_t event = 0;  // index into EventTotals::events
  std::optional<DomainId> domain;
  std::optional<VcpuId> vcpu;
  bool counted = true;  // whether anything counts it
  double count = 0;
  double enabled_ns = 0;  // the time that it was to count; 0: nothing ran
  double running_ns = 0;  // the time that it did count
  std::optional<PcpuId> pcpu{};
};

// Adds the total of `parts` of one event by `by` to the totals. A part that was counted in a part
// of the time is scaled. O(parts).
void AddCounted(const std::vector<CountedPart>& parts, TotalsBy by, EventTotals& totals);

// Returns the totals of all events of the recording by `by`, which is not kPcpu, estimated from its
// samples. Only rows of these domains, if there are any. O(samples). Errors: those of reading.
[[nodiscard]] absl::StatusOr<EventTotals> EstimateTotals(const recording::Recording& recording,
                                                         TotalsBy by,
                                                         const std::vector<DomainId>& domains);

// Returns the totals of all events by pCPU, where the trace places the recording's samples; samples
// without a place are of no pCPU. One pass over samples and trace. Errors: those of reading.
[[nodiscard]] absl::StatusOr<EventTotals> EstimateTotalsOfPcpus(const TraceInput& input);

// Adds the totals of other events, whose stretch may begin a little later and end a little earlier,
// in the order of domains, vCPUs and pCPUs.
void Append(EventTotals other, EventTotals& totals);

// Returns the means of totals of several runs of one thing, of which there is at least one. A row
// that a run does not have, as of a domain that came later, counts 0 there. Intervals are of the
// mean, by Student's t. O(runs * rows^2).
[[nodiscard]] EventTotals MeanOfRuns(const std::vector<EventTotals>& runs);

// Sets the ratios of counted totals: `compared` has the events, as EventTotals::events.
void SetRatios(const EventComparison& compared, EventTotals& totals);

}  // namespace xenoscope::profile
