// The units of one file's debug information, and the names of their entries.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "symbolizer/dwarf/dwarf_abbreviations.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

// Limit of steps of work for each byte of a file's sections.
inline constexpr uint64_t kStepsPerByte = 16;

class DwarfFile {
 public:
  // Reads the headers of all units, and each table of abbreviations that they name once, by several
  // threads. `shared` is the file to which dwz moved what several files share, or null; it must
  // outlive this object.
  DwarfFile(DwarfSections sections, const DwarfFile* shared, WorkLimit& limit);
  DwarfFile(const DwarfFile&) = delete;
  DwarfFile& operator=(const DwarfFile&) = delete;

  [[nodiscard]] const DwarfReader& reader() const { return reader_; }
  [[nodiscard]] const DwarfSections& sections() const { return sections_; }
  std::vector<DwarfUnit>& units() { return units_; }

  // Returns the name of the entry at `offset`, or of the entry that it is an instance of: the
  // linker's name, else that of the source. Empty when it has none.
  [[nodiscard]] std::string_view NameOfEntry(uint64_t offset, WorkLimit& limit) const;

  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  DwarfSections sections_;
  const DwarfFile* shared_;
  DwarfReader reader_;
  std::vector<DwarfAbbreviations> tables_;
  std::vector<DwarfUnit> units_;  // units, ascending by offset
};

}  // namespace xenoscope::symbolizer
