// The units of one file's debug information, and the names of what is in them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbolizer/dwarf/dwarf_abbreviations.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

// Steps of work that a file may cause for each byte of its sections.
inline constexpr uint64_t kStepsPerByte = 16;

class DwarfFile {
 public:
  // Reads the headers of all units, and the tables of abbreviations that they name, each once, by
  // several threads. `shared`, unless null, is the file that dwz moved to what several files have
  // alike; it must outlive this one.
  DwarfFile(DwarfSections sections, const DwarfFile* shared, WorkLimit& limit);
  DwarfFile(const DwarfFile&) = delete;
  DwarfFile& operator=(const DwarfFile&) = delete;

  const DwarfReader& reader() const { return reader_; }
  const DwarfSections& sections() const { return sections_; }
  std::vector<DwarfUnit>& units() { return units_; }

  // The name that the entry at `offset` has, or what it is an instance of: as the linker knows it,
  // else as in the source. Empty when it has none.
  std::string_view NameOfEntry(uint64_t offset, WorkLimit& limit) const;

  uint64_t MemoryUsed() const;

 private:
  DwarfSections sections_;
  const DwarfFile* shared_;
  DwarfReader reader_;
  std::vector<DwarfAbbreviations> tables_;
  std::vector<DwarfUnit> units_;  // in order of their offsets
};

}  // namespace xenoscope::symbolizer
