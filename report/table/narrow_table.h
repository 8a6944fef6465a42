// Takes from a table what a narrow terminal has no room for (Column::narrow).
#pragma once

#include "report/table/table.h"

namespace xenoscope::report {

// Whether any column can be dropped or folded.
bool CanNarrow(const Table& table);

// Removes the columns that may be dropped.
void DropColumns(Table& table);

// Makes one column "±" of each pair of columns with the ends of an interval: the greater distance
// of an end from the value. Words in place of an end stay. The cell is empty where an end is
// missing.
void FoldIntervals(Table& table);

}  // namespace xenoscope::report
