// Passes over a trace for a timeline alone, or for those who observe a trace.
#pragma once

#include <cstddef>
#include <span>

#include "base/tsc.h"
#include "correlate/pipeline_observer.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/events.h"
#include "trace/ordered_stream.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

// Returns the events whose records change something in the timeline, each with the target, which
// outlives them.
template <typename Target>
[[nodiscard]] trace::EventTargets<Target> HandledEvents(const Timeline& timeline,
                                                        const Target& target) {
  trace::EventTargets<Target> events{};
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    if (timeline.Handles(static_cast<trace::Event>(i))) events[i] = &target;
  }
  return events;
}

// Gives the timeline all that changes something in it, in the order trace::RecordOrder::kCrossing:
// the observer gets all that concerns one vCPU or one pCPU in the order of time.
void PassToTimeline(trace::OrderedStream& stream, Timeline& timeline);

// After the end of the time that is wanted, a pass reads at most so many cycles (some seconds): a
// guest may be halted for longer.
inline constexpr Cycles kMostAfterEnd = Cycles{1} << 33;

// Shows the trace, and a timeline of it, to the observers (1 to 32): all that has to do with the
// time before `end`. It stops there once what began before has ended: runs of vCPUs, VM exits and
// losses. Records come in the order trace::RecordOrder::kGroups; those that nobody wants are passed
// over. Memory: that of the timeline. O(records).
void ObserveTrace(const trace::TraceFile& trace, std::span<TraceObserver* const> observers,
                  Tsc end = trace::OrderedStream::kEnd);

}  // namespace xenoscope::correlate
