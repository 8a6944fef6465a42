// Finds the TSCs of guests from the trace alone.
//
// A guest's instruction runs while its vCPU runs, and of an HVM guest between a VMENTRY and the
// next VMEXIT. If a guest event (TRC_GUEST, HVMOP_xentrace) has the guest's TSC g as its first 8
// bytes, the TSC was read at an instant h of the host's in such a segment [begin, end], so that the
// offset g - h is in [g - end, g - begin] of one of them. The offset of the guest is in the
// intersection of what its events allow. A value that is no TSC of the host's rate contradicts
// itself soon.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/offset_ranges.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {

// A part of the trace in which one offset explains a guest's events.
struct ClockEpoch {
  Tsc begin;                        // the time of its first event's record
  Tsc end;                          // the time of its last event's record
  std::vector<OffsetRange> ranges;  // the possible offsets, ascending; more than one: undecided
  uint64_t events = 0;              // the events that agree
};

// The TSC of one domain, as events of these numbers show it. Numbers share a clock if each has one
// epoch and these agree.
struct DomainClock {
  DomainId domain;
  std::vector<uint32_t> numbers;   // below 4096, ascending
  std::vector<ClockEpoch> epochs;  // in the order of time; the clock was set between two
  uint64_t outside = 0;            // events that no offset of their epoch explains
  uint64_t unknown = 0;            // events of whose vCPU no running time before them is known
};

// How far before its record a guest may have read the TSC, in cycles (about 28 ms at 2.4 GHz).
inline constexpr Cycles kMaxEventAge = Cycles{1} << 26;
// The events of one number of a domain that prove a clock.
inline constexpr uint64_t kLeastClockEvents = 3;

// Returns the clocks that the trace proves, by domain: the events of one number in an epoch,
// kLeastClockEvents or more, agree for longer than twice kMaxEventAge. A number of which 4096
// events disagree before that is no clock. One pass over the trace in the order of time. Memory: 64
// KiB a vCPU and a number of its domain, of the first 1024 of both; others are left out.
[[nodiscard]] std::vector<DomainClock> FindGuestClocks(const trace::TraceFile& file);

}  // namespace xenoscope::correlate
