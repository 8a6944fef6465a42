#include "correlate/offset_ranges.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace xenoscope::correlate {

std::vector<OffsetRange> AllowedOffsets(uint64_t guest, const RunningRanges& ranges, Tsc since,
                                        OffsetRange limits) {
  std::vector<OffsetRange> offsets;
  // The end of the ranges that allow limits.min or more; earlier ranges allow larger offsets.
  const auto latest = std::ranges::partition_point(ranges, [&](const TscRange& range) {
    return static_cast<int64_t>(guest - range.begin.value) >= limits.min;
  });
  for (auto range = std::make_reverse_iterator(latest); range != ranges.rend(); ++range) {
    const OffsetRange allowed{static_cast<int64_t>(guest - range->end.value),
                              static_cast<int64_t>(guest - range->begin.value)};
    if (range->end < since || allowed.min > limits.max) break;
    if (!offsets.empty() && offsets.back().max >= allowed.min) {
      offsets.back().max = allowed.max;
    } else {
      offsets.push_back(allowed);
    }
  }
  return offsets;
}

std::vector<OffsetRange> Intersection(std::span<const OffsetRange> a,
                                      std::span<const OffsetRange> b) {
  std::vector<OffsetRange> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const OffsetRange range{std::max(a[i].min, b[j].min), std::min(a[i].max, b[j].max)};
    if (range.min <= range.max) both.push_back(range);
    a[i].max < b[j].max ? ++i : ++j;
  }
  return both;
}

}  // namespace xenoscope::correlate
