// The abbreviations of DWARF, which describe the debugging entries of a unit (DWARF 5, 7.5.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "symbolizer/dwarf/dwarf_cursor.h"

namespace xenoscope::symbolizer {

// The properties of a unit that the sizes of some forms depend on.
struct DwarfEncoding {
  uint16_t version = 0;
  uint8_t address_size = 0;  // 4 or 8
  uint8_t offset_size = 0;   // 4, or 8 in 64-bit DWARF
  auto operator<=>(const DwarfEncoding&) const = default;
};

struct DwarfAttribute {
  uint16_t name = 0;  // DW_AT_...
  uint16_t form = 0;  // DW_FORM_...
  int64_t implicit = 0;
};

// A step that passes over an entry, or a part of it.
struct DwarfSkip {
  enum Kind : uint8_t { kFixed, kLeb, kBlock1, kBlock2, kBlock4, kBlockLeb, kText, kIndirect };
  Kind kind = kFixed;
  uint32_t bytes = 0;  // number of bytes, for kFixed
};

// One abbreviation; its attributes and steps are ranges of the tables' lists.
struct DwarfAbbreviation {
  uint64_t code = 0;
  uint16_t tag = 0;  // DW_TAG_...
  bool has_children = false;
  uint32_t first_attribute = 0;
  uint32_t attributes = 0;
  uint32_t first_skip = 0;
  uint32_t skips = 0;
};

// A table of abbreviations.
class DwarfAbbreviations {
 public:
  // Reads the table at `offset`. The size of an unknown form is not known, so the table ends before
  // it, and so does the reading of a unit that uses it. O(length).
  DwarfAbbreviations() = default;
  DwarfAbbreviations(Bytes section, uint64_t offset, DwarfEncoding encoding);

  // Returns the abbreviation of this code, or null. O(1) with the numbering of compilers.
  [[nodiscard]] const DwarfAbbreviation* Find(uint64_t code) const {
    if (code - 1 < table_.size() && table_[code - 1].code == code) return &table_[code - 1];
    return Search(code);
  }
  [[nodiscard]] std::span<const DwarfAttribute> AttributesOf(
      const DwarfAbbreviation& abbreviation) const {
    return {attributes_.data() + abbreviation.first_attribute, abbreviation.attributes};
  }
  // Moves the cursor over the attributes of an entry.
  void Skip(const DwarfAbbreviation& abbreviation, DwarfCursor& cursor) const;
  // Returns the approximate size of the table's source, in bytes.
  [[nodiscard]] uint64_t size() const { return table_.size() + attributes_.size(); }
  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  [[nodiscard]] const DwarfAbbreviation* Search(uint64_t code) const;
  bool AddAttribute(DwarfCursor& cursor, DwarfAbbreviation& abbreviation);

  DwarfEncoding encoding_;
  std::vector<DwarfAbbreviation> table_;  // abbreviations, ascending by code
  std::vector<DwarfAttribute> attributes_;
  std::vector<DwarfSkip> skips_;
};

// Sets `skip` to the step over a value of this form; false for an unknown form.
bool SkipOf(uint16_t form, DwarfEncoding encoding, DwarfSkip& skip);
void Skip(const DwarfSkip& skip, DwarfEncoding encoding, DwarfCursor& cursor);

}  // namespace xenoscope::symbolizer
