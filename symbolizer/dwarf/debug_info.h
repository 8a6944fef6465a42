// Lines and inlined frames of addresses, from an ELF file's DWARF.
//
//   address  ->  unit  ->  innermost scope, and what that is inlined into  ->  names, call sites
//                      ->  line
//
// Each arrow is a search in ranges that are sorted once. The extents of units are read when the
// file is opened, from the units themselves: .debug_aranges, which clang does not write, is not
// needed. A unit's functions and lines are read when the first address in it is looked up. With a
// cache, nothing of the file is read until an address is looked up that lies in no unit read
// before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "base/mode.h"
#include "symbolizer/code_frame.h"
#include "symbolizer/dwarf/dwarf_companions.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/frame_table.h"
#include "symbolizer/index_cache.h"

namespace xenoscope::symbolizer {

// The debug information of one ELF file.
class DebugInfo {
 public:
  // Reads the extents of all units: O(n log n) for n ranges, by several threads. Keeps the file.
  // `finder` looks up the other files over which it is divided, as those of a file that was at any
  // of `paths`; without paths none is looked up. What was read earlier is taken from `cache`,
  // unless that is null, and what is read now is stored there in the end, if nothing was missing.
  // Error: no DWARF, or damaged sections.
  static absl::StatusOr<std::unique_ptr<DebugInfo>> Open(
      std::shared_ptr<const FileContent> file, const FileFinder& finder = FileFinder(),
      std::vector<std::string> paths = {}, std::shared_ptr<const IndexCache> cache = nullptr);
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // Returns the frames at `address` (as in the file), innermost first; nothing where none is known.
  // Where there is a line but no function, as in assembly code, there is one frame without a name.
  // O(log n), once the unit was read. Not thread-safe.
  std::vector<CodeFrame> FramesAt(Address address);
  // Sets `frames` to them, which spares allocation.
  void FramesAt(Address address, std::vector<CodeFrame>& frames);

  // Reads the units of all these addresses now, by several threads.
  void ReadUnitsOf(std::span<const Address> addresses);

  // Returns whether reading ended early, as the file caused too much work; what was not read is not
  // known.
  [[nodiscard]] bool gave_up() const;
  // Return the other files that were read, and those that were not found, each with what is
  // therefore missing.
  [[nodiscard]] std::vector<CompanionFile> Companions() const;
  [[nodiscard]] std::vector<std::string> Missing() const;
  // Returns the memory used in bytes, without the file itself.
  [[nodiscard]] uint64_t MemoryUsed() const;

 private:
  class Reader;

  DebugInfo(std::shared_ptr<const FileContent> file, FileFinder finder,
            std::vector<std::string> paths, std::shared_ptr<const IndexCache> cache);

  // Returns null if the file, which was in the cache, is damaged now.
  Reader* OpenedReader();
  absl::Status OpenReader();
  void FindInCache();
  void StoreInCache();

  std::shared_ptr<const FileContent> file_;
  FileFinder finder_;
  std::vector<std::string> paths_;
  std::shared_ptr<const IndexCache> cache_;
  std::string build_id_;
  MappedFile cached_file_;
  FrameTable cached_;
  bool tried_to_read_ = false;
  std::unique_ptr<Reader> reader_;  // null: the cache had all that was asked for
};

}  // namespace xenoscope::symbolizer
