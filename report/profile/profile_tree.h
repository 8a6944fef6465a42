// A profile by several columns as a tree: a level for each column, each with its subtotals.
#pragma once

#include "report/profile/profile_view.h"
#include "report/table/table.h"

namespace xenoscope::report {

// Returns the tree of a report whose result has subtotals: a group for each domain, and in it a row
// for each node, below the node that it is a part of. Of each domain are shown the `limit` largest
// rows of the profile, what they are parts of, and subtotals that are as large as the smallest of
// them. O(rows log rows).
Table ProfileTree(const ProfileReport& report, const ProfileSelection& selection);

}  // namespace xenoscope::report
