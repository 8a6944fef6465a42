// What there is in a trace, and what could not be read: every byte is accounted for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/tsc.h"
#include "correlate/guest_clocks.h"
#include "correlate/timeline.h"
#include "trace/record.h"
#include "trace/unread_counts.h"
#include "trace/windows.h"

namespace xenoscope::analysis {

// The totals of a trace. records includes the records that other fields name; record_bytes +
// header_bytes + unread.damaged_bytes is the size of the file (checked).
struct TraceTotals {
  uint64_t bytes = 0;
  uint64_t header_bytes = 0;  // bytes of window headers
  uint64_t record_bytes = 0;
  uint64_t records = 0;         // all records, those counted below included
  uint64_t unknown_events = 0;  // records of events that this version does not know
  uint64_t first_malformed_offset = 0;
  uint64_t padding = 0;  // records that fill up the end of a ring
  uint64_t loss_marks = 0;
  uint64_t lost_records = 0;  // records lost, as the marks say
  trace::UnreadCounts unread;
  uint64_t pcpus = 0;
  Tsc first;
  Tsc last;
  // Records by event id, of the first kUnknownKept unknown ids.
  std::map<uint32_t, uint64_t> unknown_by_id;
  std::vector<trace::Damage> first_damages;  // the first kDamagesKept damages
  correlate::TimelineFaults faults;
  // The TSCs of guests; searched for only if wanted (TraceHints).
  std::vector<correlate::DomainClock> guest_clocks;

  static constexpr size_t kDamagesKept = 16;
  static constexpr size_t kUnknownKept = 256;

  // Counts an item that is not a known record.
  void CountNonRecord(const trace::Item& item);
  // Adds the figures of the part of the trace that follows.
  void Append(const TraceTotals& later);

 private:
  // Keep it, unless there are too many.
  void KeepUnknown(uint32_t id, uint64_t count);
  void KeepDamage(const trace::Damage& damage);
};

}  // namespace xenoscope::analysis
