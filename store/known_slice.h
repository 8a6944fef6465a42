// Whether a store has a slice already.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "store/slice.h"
#include "store/store.h"

namespace xenoscope::store {

// Returns the slices of the host and the event that may overlap this one in time.
[[nodiscard]] Selection Near(const SliceHead& head);

// Returns whether the slice is among `near`, the store's slices of Near(head). Errors: as
// Store::Push.
[[nodiscard]] absl::StatusOr<bool> IsKnown(const SliceHead& head,
                                           const std::vector<SliceHead>& near);

}  // namespace xenoscope::store
