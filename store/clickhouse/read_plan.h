// Divides a question into parts whose answers need little memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/clickhouse/conditions.h"

namespace xenoscope::store {

// What the slices of a host that begin in an interval of time need, in bytes.
struct StoredSize {
  std::string host;
  int64_t begin_ns = 0;  // of the interval
  uint64_t bytes = 0;
};

// The most bytes of parts, unless one size alone has more. The first part is small, since nothing
// else is done while the server prepares it; each later one may be twice as large, up to `most`: a
// statement costs the server some ms.
struct PartBytes {
  uint64_t first = uint64_t{2} << 20;
  uint64_t most = uint64_t{32} << 20;
};

// Returns the parts of the selection that have all of these, which are host by host and each
// host's in the order of time; intervals are `interval_ns` long. A part has whole intervals: slices
// of one become a joined one, and a part shows this wholly or not at all. O(sizes).
std::vector<Range> PlanReads(const Selection& selection, const std::vector<StoredSize>& sizes,
                             int64_t interval_ns, PartBytes bytes = {});

}  // namespace xenoscope::store
