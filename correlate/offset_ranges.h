// Which offsets of a guest's TSC to the host's are possible: a guest that read its TSC ran then.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/tsc.h"

namespace xenoscope::correlate {

// A range of guest TSC - host TSC in cycles, both ends included.
struct OffsetRange {
  int64_t min = 0;
  int64_t max = 0;

  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

// Where a vCPU's guest can have run, in the order of time.
using RunningRanges = std::deque<TscRange>;

// Returns the offsets within `limits` with which the guest read `guest` in one of the ranges, of
// those that end at `since` or later: ascending, and not touching. O(log ranges + ranges that
// matter).
[[nodiscard]] std::vector<OffsetRange> AllowedOffsets(uint64_t guest, const RunningRanges& ranges,
                                                      Tsc since, OffsetRange limits);

// Returns the intersection of two ascending lists of disjoint ranges. O(|a| + |b|).
[[nodiscard]] std::vector<OffsetRange> Intersection(std::span<const OffsetRange> a,
                                                    std::span<const OffsetRange> b);

}  // namespace xenoscope::correlate
