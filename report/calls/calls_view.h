// The calls of functions of kernels as tables: the functions that were called most, and trees of
// calls.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/tsc.h"
#include "report/calls/call_forest.h"
#include "report/table/table.h"

namespace xenoscope::report {

// What the groups of a forest are called: a phase of a boot, or a thread.
struct CallGroups {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> words;  // by group, a cell for each column
};

struct CallsOptions {
  Clock clock;
  // For text: groups have a heading with their sums, and columns in which nothing is are left out.
  bool text = false;
  bool longest_first = false;  // the groups, else they have their own order
  size_t limit = 0;            // the most functions, or calls, of a group; 0: all
};

// Returns the functions of each group, those called most first. States divide `self`, so that rows
// of a group add up to the times of its outermost calls. O(calls * depth).
[[nodiscard]] Table CallsTable(const CallForest& forest, const CallGroups& groups,
                               const CallsOptions& options);
// Returns the tree of calls of each group, the longest first. States divide the time with the calls
// within, so that a call is its own time and the rows below it. Those beyond the limit are one row
// below their caller. O(calls log calls).
[[nodiscard]] Table CallTreeTable(const CallForest& forest, const CallGroups& groups,
                                  const CallsOptions& options);

}  // namespace xenoscope::report
