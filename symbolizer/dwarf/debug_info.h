// Lines and inlined frames of addresses, from an ELF file's DWARF.
//
//   address  ->  unit  ->  innermost scope, and what that is inlined into  ->  names, call sites
//                      ->  line
//
// Each arrow is a search in ranges that were sorted once. Where the units are is read when the file
// is opened, from the units themselves: .debug_aranges, which clang does not write, is not needed.
// A unit's functions and lines are read when the first address in it is asked for. With a cache
// nothing of the file is read before an address is asked for that was in no unit read before.
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

class DebugInfo {
 public:
  // Reads where all units are: O(n log n) for n ranges, by several threads. Keeps the
  // file. Other files that it is divided over are looked for by `finder`, as of a file that was at
  // any of `paths`; without paths none are. What was read before is taken from `cache`, unless that
  // is null, and what was read now is stored there in the end, if nothing was missing. Error: no
  // DWARF, or sections that are damaged.
  static absl::StatusOr<std::unique_ptr<DebugInfo>> Open(
      std::shared_ptr<const FileContent> file, const FileFinder& finder = FileFinder(),
      std::vector<std::string> paths = {}, std::shared_ptr<const IndexCache> cache = nullptr);
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

  DebugInfo(std::shared_ptr<const FileContent> file, FileFinder finder,
            std::vector<std::string> paths, std::shared_ptr<const IndexCache> cache);

  // Null where the file, which the cache had, is damaged now.
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
  std::unique_ptr<Reader> reader_;  // null: nothing was needed that the cache has not
};

}  // namespace xenoscope::symbolizer
