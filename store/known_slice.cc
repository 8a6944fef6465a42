#include "store/known_slice.h"

#include "base/error.h"

namespace xenoscope::store {

Selection Near(const SliceHead& head) {
  Selection near{.hosts = {head.host}, .event = head.event};
  near.until_ns = head.end_ns;
  // No slice is longer, so that the index bounds this search.
  near.since_ns = head.begin_ns - kMaxSliceNs;
  return near;
}

absl::StatusOr<bool> IsKnown(const SliceHead& head, const std::vector<SliceHead>& near) {
  for (const SliceHead& other : near) {
    if (other.begin_ns == head.begin_ns && other.end_ns == head.end_ns) return true;
    if (other.end_ns <= head.begin_ns) continue;
    return PreconditionError(
        "host {} already has a slice that overlaps this one in time and is not the same: two hosts "
        "push under one name, or its clock was set back; give each host a name of its own with "
        "--host",
        head.host);
  }
  return false;
}

}  // namespace xenoscope::store
