// Checks the tree of a profile's subtotals.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "correlate/profile_result.h"

namespace xenoscope::correlate {

// Checks that rows have together the samples of what they are parts of (ProfileRow::part_of):
// `rows` those of the last level, the rows of a level those of the level before it. Errors
// (Internal): they have not, or a row is part of none. O(rows).
[[nodiscard]] absl::Status CheckLevels(std::span<const std::vector<ProfileRow>> levels,
                                       const std::vector<ProfileRow>& rows);

// Checks ProfileResult::subtotals as levels of the rows, and that the first of them add up to the
// domains. Errors and cost: as CheckLevels.
[[nodiscard]] absl::Status CheckSubtotals(const ProfileResult& result);

}  // namespace xenoscope::correlate
