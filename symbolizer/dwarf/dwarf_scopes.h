// The scopes of a unit, by address: its functions, and the functions inlined into them.
#pragma once

#include <cstdint>
#include <vector>

#include "symbolizer/disjoint_ranges.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

struct DwarfScope {
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint64_t entry = 0;       // offset of the entry in .debug_info, for its name
  uint32_t parent = kNone;  // index of the scope that it is inlined into; kNone for a function
  uint32_t call_file = 0;   // file of the call, by its number in the unit's line program
  uint32_t call_line = 0;
};

struct DwarfScopes {
  std::vector<DwarfScope> scopes;   // scopes; an inlined one comes after its parent
  std::vector<OwnedRange> extents;  // ranges of addresses, owned by indices in `scopes`
};

// Reads all entries of a unit. O(length).
DwarfScopes ReadScopes(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit);

}  // namespace xenoscope::symbolizer
