// Units of .debug_info, and what the attributes of their entries say. DWARF 2 to 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/dwarf/dwarf_abbreviations.h"
#include "symbolizer/dwarf/dwarf_cursor.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

struct DwarfUnit {
  uint64_t begin = 0;    // of its header in .debug_info
  uint64_t entries = 0;  // of its first entry
  uint64_t end = 0;
  DwarfEncoding encoding;
  uint64_t abbreviations_at = 0;
  const DwarfAbbreviations* abbreviations = nullptr;
  // What its first entry says, once ReadRoot was called.
  bool is_code = false;  // a compilation unit, not one of types or a part shared by units
  Address low_pc = 0;
  uint64_t str_offsets_base = 0;
  uint64_t addr_base = 0;
  uint64_t rnglists_base = 0;
  uint64_t ranges_base = 0;              // of version 4's split units
  std::optional<uint64_t> line_program;  // in .debug_line
  std::string_view directory;
  // Split DWARF: where the rest of it is, and the number that both parts have.
  std::string_view split_name;
  uint64_t split_id = 0;
  uint64_t split_ranges_base = 0;
};

// The headers of all units, in order of their offsets; those of types are left out. A damaged
// header ends the list.
std::vector<DwarfUnit> ReadUnits(const DwarfSections& sections);

struct DwarfValue {
  enum Kind : uint8_t {
    kNone,
    kNumber,
    kAddress,
    kText,
    kReference,
    kSharedReference,  // into the .debug_info of the file that dwz made for several
    kRangeIndex
  };
  Kind kind = kNone;
  uint64_t number = 0;  // of references: an offset in .debug_info
  std::string_view text = {};
};

struct AddressRange {
  Address begin = 0;
  Address end = 0;
};

// Where an entry's code is, as far as it says so in itself.
struct DwarfExtent {
  DwarfValue low;
  DwarfValue high;
  DwarfValue ranges;

  // Takes the attribute if it is of an extent.
  void Take(uint16_t attribute, const DwarfValue& value);
};

class DwarfReader {
 public:
  // `shared_texts`: the .debug_str of the file that dwz made for several.
  explicit DwarfReader(const DwarfSections& sections, Bytes shared_texts = {})
      : sections_(sections), shared_texts_(shared_texts) {}

  // The value at the cursor, which moves behind it.
  DwarfValue ReadValue(const DwarfUnit& unit, const DwarfAttribute& attribute,
                       DwarfCursor& cursor) const;
  // Reads the unit's first entry. Its abbreviations must be set.
  void ReadRoot(DwarfUnit& unit, WorkLimit& limit, DwarfExtent& extent) const;
  // Appends the ranges; what the linker dropped, and so lies below all code, is left out.
  void AddRanges(const DwarfUnit& unit, const DwarfExtent& extent, WorkLimit& limit,
                 std::vector<AddressRange>& ranges) const;

  const DwarfSections& sections() const { return sections_; }

 private:
  DwarfValue ReadForm(const DwarfUnit& unit, uint16_t form, int64_t implicit,
                      DwarfCursor& cursor) const;
  std::string_view IndexedText(const DwarfUnit& unit, uint64_t index) const;
  Address IndexedAddress(const DwarfUnit& unit, uint64_t index) const;
  void AddOldRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                    std::vector<AddressRange>& ranges) const;
  void AddListedRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                       std::vector<AddressRange>& ranges) const;
  void Add(AddressRange range, std::vector<AddressRange>& ranges) const;

  const DwarfSections& sections_;
  Bytes shared_texts_;
};

}  // namespace xenoscope::symbolizer
