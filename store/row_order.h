// The order of rows of a store's profile. It depends on what the rows are, not on the order in
// which slices, or their names, came to the store.
#pragma once

#include <string>
#include <vector>

#include "correlate/profile_result.h"

namespace xenoscope::store {

// Puts rows in the order of their names; `domains` and `exits` are those of their numbers. Rounds
// shares and their intervals to 40 bits, so that those of rows with equal samples are equal: sums
// depend a little on the order in which they were added. A view that then sorts by shares, and
// keeps equal ones in their order, has one order for all stores of the same slices; sums of joined
// slices are rounded more. O(rows log(rows)).
void OrderByNames(const std::vector<std::string>& domains, const std::vector<std::string>& exits,
                  std::vector<correlate::ProfileRow>& rows);

}  // namespace xenoscope::store
