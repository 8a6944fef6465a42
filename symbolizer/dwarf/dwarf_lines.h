// The source lines of addresses: the result of a unit's line-number program (DWARF 5, 6.2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mode.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

class DwarfLines {
 public:
  struct Row {
    static constexpr uint32_t kNoFile = ~uint32_t{0};
    uint32_t file = kNoFile;  // kNoFile: the row has no line
    uint32_t line = 0;
  };

  DwarfLines() = default;
  // Runs the program of the unit; the result is empty where there is none. O(length); damage ends
  // the result early.
  static DwarfLines Read(const DwarfReader& reader, const DwarfUnit& unit, WorkLimit& limit);

  // Returns the row of the address. Where several rows have one address, the last one counts. O(log
  // n).
  [[nodiscard]] Row Find(Address address) const;
  // Returns the path of a file by its number in the program; empty when it has none. Relative paths
  // start at the compiler's working directory.
  [[nodiscard]] std::string PathOf(uint32_t file) const;
  // Appends the starts of rows in (begin, end).
  void AppendStartsIn(Address begin, Address end, std::vector<Address>& starts) const;
  [[nodiscard]] uint32_t files() const { return static_cast<uint32_t>(files_.size()); }
  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  friend class LineProgram;

  struct File {
    uint64_t directory = 0;
    std::string_view name;
  };

  std::vector<Address> starts_;
  std::vector<Row> rows_;  // rows, at the same index as in starts_
  std::vector<std::string_view> directories_;
  std::vector<File> files_;
  std::string_view compiled_in_;
};

}  // namespace xenoscope::symbolizer
