// The offset of a domain's TSC to the host's, from what its kernel recorded.
//
// An answer of the domain's agent bounds it: the guest read its TSC between two readings of the
// host's. Each event of its kernel bounds it further: it was written while its vCPU ran, of an HVM
// guest between a VMENTRY and the next VMEXIT (docs/method.md, section 1.2). Where the guest sets
// its TSC a new epoch begins: two answers show that, and events in which part of the trace each
// CPU's events are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "correlate/offset_ranges.h"
#include "guests/ftrace/kernel_trace.h"
#include "trace/trace_file.h"

namespace xenoscope::guests {

// A part of the trace in which one offset of guest TSC - host TSC, in cycles, explains the events.
struct ClockEpoch {
  std::vector<correlate::OffsetRange> ranges;  // the possible offsets, ascending
  // The offset that is used, one of these: 0 if that is possible, else the middle of the widest.
  int64_t offset = 0;
  // The first answer of the agent in it came before this instant of the host's TSC; 0: the first
  // epoch.
  Tsc set_before;
  std::vector<uint64_t> first_events;  // as EventClock::Part's

  // Returns the cycles between the least and the greatest possible offset.
  [[nodiscard]] Cycles Width() const {
    return static_cast<uint64_t>(ranges.back().max) - static_cast<uint64_t>(ranges.front().min);
  }
};

struct KernelClock {
  DomainId domain;
  std::vector<ClockEpoch> epochs;  // in the order of time; the guest's TSC was set between two
  uint64_t answers = 0;            // of the agent, that agree
  uint64_t bad_answers = 0;        // that no offset of the others explains
  uint64_t inside = 0;             // events that agree: with their epoch's offset, their vCPU ran
  uint64_t outside = 0;            // events that no offset of the others explains
  uint64_t untraced = 0;           // events before or behind Xen's trace of their vCPU

  // Returns how events' times become the host's.
  [[nodiscard]] EventClock Events() const;
};

// Returns the clocks of the traces' domains. Dom0's is the host's; its events are held against it
// where another domain's clock makes a pass over the trace necessary. `xen` is null where there is
// no trace: then events bound nothing. One pass over both, O(log of the ranges that a vCPU ran
// within the width of the offset) for each event; memory: these ranges, which are bounded.
[[nodiscard]] std::vector<KernelClock> FindKernelClocks(std::span<const KernelTrace* const> traces,
                                                        const trace::TraceFile* xen);

}  // namespace xenoscope::guests
