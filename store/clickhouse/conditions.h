// Conditions of SQL that choose rows of the table of sums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.h"

namespace xenoscope::store {

// So many pushes are named in one question, whose text ClickHouse bounds to 256 kB.
inline constexpr uint64_t kMostNamedPushes = 8192;

// Returns a text of SQL: 'text'.
std::string Quoted(std::string_view text);

// Returns the condition that rows are of slices of these hosts and times, and of this event.
std::string Where(const Selection& selection);
// The same of the pieces of joined slices that may have such slices.
std::string WherePieces(const Selection& selection);
// The condition of marks of slices for which a joined one stands and whose rows are not yet
// removed.
std::string WhereMarks(Selection selection);
// Returns a subquery of the slices for which no joined one stands: kSliceColumns, push and
// slices. It reads slices and marks in one pass over the table, so that what another process joins
// meanwhile is seen wholly or not at all: ClickHouse reads a subquery of marks later than the rows
// that it is held against, and then neither the joined slice nor its pieces are found.
std::string Slices(const Selection& selection);
// As Where, but only of those slices, without the second one of slices that were pushed twice at
// the same time.
std::string WhereOnce(const Selection& selection);
// The statement that lists the numbers of the pushes that WhereOnce chooses.
std::string SelectOnce(const Selection& selection);

}  // namespace xenoscope::store
