// Lines and inlined frames of addresses, from an ELF file's DWARF, read with libdw.
//
// libdw finds the unit of an address by .debug_aranges, which clang does not write, or by a search
// through all units. Here the ranges of all units are sorted once, and those of a unit's functions
// when the first address in it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

class DebugInfo {
 public:
  // Reads the ranges of all units: O(n log n) for n ranges. Keeps the file. Error: no DWARF.
  static absl::StatusOr<std::unique_ptr<DebugInfo>> Open(FileContent file);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // The frames at `address`, as in the file, innermost first; empty where there is no function.
  // O(log units + log functions + inlined frames of the function). Not thread-safe.
  std::vector<Frame> FramesAt(Address address);

 private:
  class Reader;  // keeps libdw's types out of this header

  explicit DebugInfo(std::unique_ptr<Reader> reader);

  std::unique_ptr<Reader> reader_;
};

}  // namespace xenoscope::symbolizer
