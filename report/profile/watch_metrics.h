// What `xenoscope watch` found, as metrics of Prometheus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "report/profile/watch_view.h"

namespace xenoscope::report {

// The slices that a profile is of.
struct WatchedSlices {
  uint64_t slices = 0;
  uint64_t hosts = 0;
  int64_t newest_end_ns = 0;  // the end of the newest one, in nanoseconds of UTC since 1970
};

// Returns the metrics, which docs/fleet.md lists: those of the `limit` rows with the largest
// shares, and the sum of the others, so that the number of time series is bounded.
// O(rows log rows).
[[nodiscard]] std::string WatchMetrics(const Watch& watch, const WatchedSlices& slices,
                                       size_t limit);

}  // namespace xenoscope::report
