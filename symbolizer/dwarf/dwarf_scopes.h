// The functions of a unit and what is inlined into them, by address.
#pragma once

#include <cstdint>
#include <vector>

#include "symbolizer/disjoint_ranges.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

struct DwarfScope {
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint64_t entry = 0;       // in .debug_info: there its name is found
  uint32_t parent = kNone;  // what it is inlined into; a function has none
  uint32_t call_file = 0;   // where it was called: a number in the unit's line program
  uint32_t call_line = 0;
};

struct DwarfScopes {
  std::vector<DwarfScope> scopes;   // one that is inlined comes after its parent
  std::vector<OwnedRange> extents;  // owned by scopes
};

// Reads all entries of a unit. O(length).
DwarfScopes ReadScopes(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit);

}  // namespace xenoscope::symbolizer
