// Lines and inlined frames of addresses, from an ELF file's DWARF.
//
//   address  ->  unit  ->  innermost scope, and what that is inlined into  ->  names, call sites
//                      ->  line
//
// Each arrow is a search in ranges that were sorted once. Where the units are is read when the file
// is opened, from the units themselves: .debug_aranges, which clang does not write, is not needed.
// A unit's functions and lines are read when the first address in it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/dwarf_companions.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"

namespace xenoscope::symbolizer {

// One level of inlining. The texts live as long as the DebugInfo that they are of.
struct CodeFrame {
  std::string_view function;  // demangled
  // Where in it: the line of the address, or where the frame before this one was called.
  std::string_view file;
  uint32_t line = 0;  // 0: not known
};

class DebugInfo {
 public:
  // Reads where all units are: O(n log n) for n ranges, by several threads. Keeps the
  // file. Other files that it is divided over are looked for by `finder`, as of a file that was at
  // any of `paths`; without paths none are. Error: no DWARF, or sections that are damaged.
  static absl::StatusOr<std::unique_ptr<DebugInfo>> Open(std::shared_ptr<const FileContent> file,
                                                         const FileFinder& finder = FileFinder(),
                                                         std::vector<std::string> paths = {});
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // The frames at `address`, as in the file, innermost first; empty where nothing is known. Where
  // there is a line but no function, as in assembly code, one frame without a name. O(log n), once
  // the unit was read. Not thread-safe.
  std::vector<CodeFrame> FramesAt(Address address);
  // The same, into a vector that is used again.
  void FramesAt(Address address, std::vector<CodeFrame>& frames);

  // Reads the units of all these addresses now, by several threads.
  void ReadUnitsOf(std::span<const Address> addresses);

  // The file made so much work that reading was given up: what is missing is missing.
  bool gave_up() const;
  // Other files that were read, and those that were not found: each with what is missing then.
  std::vector<CompanionFile> Companions() const;
  std::vector<std::string> Missing() const;
  // Bytes, without the file's own.
  uint64_t MemoryUsed() const;

 private:
  class Reader;

  explicit DebugInfo(std::unique_ptr<Reader> reader);

  std::unique_ptr<Reader> reader_;
};

}  // namespace xenoscope::symbolizer
