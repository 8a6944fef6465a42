// Conditions of SQL that choose rows of the table of slices.
#pragma once

#include <string>
#include <string_view>

#include "store/store.h"

namespace xenoscope::store {

// Slices of a selection, of hosts from one name to another, in the order of bytes: a part of a
// question.
struct Range {
  Selection selection;
  std::string first_host{};  // empty: no bound
  std::string last_host{};
};

// Returns a text of SQL: 'text'.
std::string Quoted(std::string_view text);

// Returns the condition that rows are of slices of these hosts and times, and of this event.
std::string Where(const Range& range);
// The same of the pieces of joined slices that may have such slices.
std::string WherePieces(const Range& range);
// The condition of marks of slices for which another one stands and which are not yet removed.
std::string WhereMarks(Range range);

}  // namespace xenoscope::store
