// Units of .debug_info, and the values of their entries' attributes. DWARF 2 to 5.
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
  uint64_t begin = 0;    // offset of its header in .debug_info
  uint64_t entries = 0;  // offset of its first entry in .debug_info
  uint64_t end = 0;
  DwarfEncoding encoding;
  uint64_t abbreviations_at = 0;
  const DwarfAbbreviations* abbreviations = nullptr;
  // The fields below come from the first entry, and are set by ReadRoot.
  // whether it is a compilation unit, not one of types or a part that units share
  bool is_code = false;
  Address low_pc = 0;
  uint64_t str_offsets_base = 0;
  uint64_t addr_base = 0;
  uint64_t rnglists_base = 0;
  uint64_t ranges_base = 0;              // base of ranges, for split units of version 4
  std::optional<uint64_t> line_program;  // offset in .debug_line
  std::string_view directory;
  // Split DWARF: the name of the file with the rest of the unit, and the number that both parts
  // have.
  std::string_view split_name;
  uint64_t split_id = 0;
  uint64_t split_ranges_base = 0;
};

// Reads the headers of all units, ascending by offset; units of types are left out. A damaged
// header ends the list.
std::vector<DwarfUnit> ReadUnits(const DwarfSections& sections);

struct DwarfValue {
  enum Kind : uint8_t {
    kNone,
    kNumber,
    kAddress,
    kText,
    kReference,
    kSharedReference,  // an offset in the .debug_info of the file that dwz made for several files
    kRangeIndex
  };
  Kind kind = kNone;
  uint64_t number = 0;  // the number; for references an offset in .debug_info
  std::string_view text = {};
};

struct AddressRange {
  Address begin = 0;
  Address end = 0;
};

// The code of an entry, as far as its own attributes describe it.
struct DwarfExtent {
  DwarfValue low;
  DwarfValue high;
  DwarfValue ranges;

  // Takes the attribute if it describes an extent.
  void Take(uint16_t attribute, const DwarfValue& value);
};

class DwarfReader {
 public:
  // `shared_texts` is the .debug_str of the file that dwz made for several files.
  explicit DwarfReader(const DwarfSections& sections, Bytes shared_texts = {})
      : sections_(sections), shared_texts_(shared_texts) {}

  // Reads the value at the cursor, and moves the cursor behind it.
  [[nodiscard]] DwarfValue ReadValue(const DwarfUnit& unit, const DwarfAttribute& attribute,
                                     DwarfCursor& cursor) const;
  // Reads the unit's first entry. The unit's abbreviations must be set.
  void ReadRoot(DwarfUnit& unit, WorkLimit& limit, DwarfExtent& extent) const;
  // Appends the ranges, without those that the linker dropped, which lie below all code.
  void AddRanges(const DwarfUnit& unit, const DwarfExtent& extent, WorkLimit& limit,
                 std::vector<AddressRange>& ranges) const;

  [[nodiscard]] const DwarfSections& sections() const { return sections_; }

 private:
  [[nodiscard]] DwarfValue ReadForm(const DwarfUnit& unit, uint16_t form, int64_t implicit,
                                    DwarfCursor& cursor) const;
  [[nodiscard]] std::string_view IndexedText(const DwarfUnit& unit, uint64_t index) const;
  [[nodiscard]] Address IndexedAddress(const DwarfUnit& unit, uint64_t index) const;
  void AddOldRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                    std::vector<AddressRange>& ranges) const;
  void AddListedRanges(const DwarfUnit& unit, uint64_t offset, WorkLimit& limit,
                       std::vector<AddressRange>& ranges) const;
  void Add(AddressRange range, std::vector<AddressRange>& ranges) const;

  const DwarfSections& sections_;
  Bytes shared_texts_;
};

}  // namespace xenoscope::symbolizer
