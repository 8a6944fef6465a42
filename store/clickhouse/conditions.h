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
// As Where, but only of slices for which no joined one stands.
std::string WhereNotReplaced(const Selection& selection);
// The same, without the second one of slices that were pushed twice at the same time.
std::string WhereOnce(const Selection& selection);
// The statement that lists the numbers of the pushes that WhereOnce chooses.
std::string SelectOnce(const Selection& selection);

}  // namespace xenoscope::store
