// The other files that a file's debug information lies in: those of split DWARF (DWARF 5, 7.3.2;
// before that GNU's, "DebugFission"), and the one to which dwz moved what several files have alike
// (.gnu_debugaltlink; DWARF 5's .debug_sup).
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

// A companion that was read: by the name that it has among an archive's images.
struct CompanionFile {
  std::string name;
  Bytes content;
};

class DwarfCompanions {
 public:
  // Of a file that was at any of `paths`: its own, and that of the program whose debug file it is.
  // A default one finds none.
  DwarfCompanions() = default;
  DwarfCompanions(FileFinder finder, std::vector<std::string> paths)
      : finder_(std::move(finder)), paths_(std::move(paths)) {}

  // Before anything else: reads the file that dwz made, if `elf` names one that is found and has
  // the build-id that it should. The file's content must outlive this. Null: there is none.
  const DwarfFile* FindShared(const ElfFile& elf, WorkLimit& limit);

  // The rest of a unit, of which `whole` has the skeleton.
  struct SplitUnit {
    SplitUnit(DwarfSections sections, WorkLimit& limit)
        : file(std::move(sections), nullptr, limit) {}
    DwarfFile file;
    const DwarfUnit* unit = nullptr;  // of file
  };
  // Null where it is not found, or is of another build. Thread-safe.
  std::unique_ptr<SplitUnit> FindSplit(const DwarfUnit& skeleton, const DwarfSections& whole,
                                       WorkLimit& limit);

  // What was read.
  std::vector<CompanionFile> Used() const;
  // Names of files, each with what is missing without it.
  std::vector<std::string> Missing() const;

 private:
  struct File {
    FileContent content;
    DwarfSections sections;
    // In a package: where in its sections what is of a unit lies.
    struct Part {
      DwarfSections::Name section;
      uint32_t begin;
      uint32_t size;
    };
    absl::flat_hash_map<uint64_t, std::vector<Part>> parts;
  };

  void FindPackage(WorkLimit& limit);
  // The file, read once; null where it is none of split DWARF.
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

  mutable std::mutex mutex_;  // of what is below
  bool looked_for_package_ = false;
  const File* package_ = nullptr;
  std::map<std::string, std::unique_ptr<File>> files_;  // by their names as images
  uint64_t split_missing_ = 0;
  std::string first_split_missing_;
};

}  // namespace xenoscope::symbolizer
