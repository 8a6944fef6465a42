// The companions of a file: other files with parts of its debug information. They are those of
// split DWARF (DWARF 5, 7.3.2; before that GNU's, "DebugFission"), and the file to which dwz moved
// what several files share (.gnu_debugaltlink; DWARF 5's .debug_sup).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/dwarf/dwarf_file.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

// A companion that was read, by its name among an archive's images.
struct CompanionFile {
  std::string name;
  Bytes content;
};

// The companions of one file.
class DwarfCompanions {
 public:
  // A default-constructed object finds no companions. `paths` are all places where the file was:
  // its own path, and that of the program whose debug file it is.
  DwarfCompanions() = default;
  DwarfCompanions(FileFinder finder, std::vector<std::string> paths)
      : finder_(std::move(finder)), paths_(std::move(paths)) {}

  // Reads the file that dwz made, if `elf` names one and it is found with the right build-id; null
  // if not. To be called before anything else. The content of `elf` must outlive this object.
  const DwarfFile* FindShared(const ElfFile& elf, WorkLimit& limit);

  // A unit of a companion; the file itself has the skeleton of the unit.
  struct SplitUnit {
    SplitUnit(DwarfSections sections, WorkLimit& limit)
        : file(std::move(sections), nullptr, limit) {}
    DwarfFile file;
    const DwarfUnit* unit = nullptr;  // the unit, in `file`
  };
  // Returns the unit, or null where it is not found or is of another build. Thread-safe.
  std::unique_ptr<SplitUnit> FindSplit(const DwarfUnit& skeleton, const DwarfSections& whole,
                                       WorkLimit& limit);

  // Returns the companions that were read.
  [[nodiscard]] std::vector<CompanionFile> Used() const;
  // Returns the names of companions that were not found, each with what is missing without it.
  [[nodiscard]] std::vector<std::string> Missing() const;

 private:
  struct File {
    FileContent content;
    DwarfSections sections;
    // In a package: the part of a section that belongs to a unit.
    struct Part {
      DwarfSections::Name section;
      uint32_t begin;
      uint32_t size;
    };
    absl::flat_hash_map<uint64_t, std::vector<Part>> parts;
  };

  void FindPackage(WorkLimit& limit);
  // Reads the file, once; null where it has no split DWARF.
  const File* Read(absl::StatusOr<FileContent> content, const std::string& name, bool package,
                   WorkLimit& limit);
  static bool ReadIndex(const ElfFile& elf, File& file);
  const File* FindFile(const DwarfUnit& skeleton, WorkLimit& limit);

  FileFinder finder_;
  std::vector<std::string> paths_;
  std::string build_id_;
  FileContent shared_content_;
  std::string shared_id_;
  std::unique_ptr<DwarfFile> shared_;
  std::vector<std::string> missing_;

  mutable std::mutex mutex_;  // guards all members below
  bool looked_for_package_ = false;
  const File* package_ = nullptr;
  std::map<std::string, std::unique_ptr<File>> files_;  // companions by their names as images
  uint64_t split_missing_ = 0;
  std::string first_split_missing_;
};

}  // namespace xenoscope::symbolizer
