// The sections of an ELF file that hold its debug information, decompressed where they are
// compressed (SHF_COMPRESSED, with zlib or zstd; older: .zdebug_NAME).
//
// Split DWARF (DWARF 5, 7.3.2) puts most of them into other files, in sections whose names end with
// .dwo: NAME.dwo for one unit, or PROGRAM.dwp for all, whose index says which parts belong to which
// unit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/object_sections.h"

namespace xenoscope::symbolizer {

class DwarfSections {
 public:
  enum Name : uint8_t {
    kInfo,
    kAbbrev,
    kLine,
    kStr,
    kLineStr,
    kRanges,
    kRngLists,
    kAddr,
    kStrOffsets,
    kFrame,  // of Kind::kFrames only
    kCount
  };
  enum class Kind : uint8_t {
    kWhole,
    kSplit,   // the sections whose names end with .dwo
    kFrames,  // .debug_frame alone
  };

  // Reads the sections of a file, whose bytes must outlive the result. Two sections are
  // decompressed at a time. Those of an object file are relocated: addresses are as in
  // object_sections.h. Errors: no debug information; a section that is damaged, or that grows
  // to more than about ten times its size when decompressed (real DWARF does not).
  static absl::StatusOr<DwarfSections> Read(const ElfFile& file, Bytes bytes,
                                            Kind kind = Kind::kWhole);

  // Returns the sections of a split file, or a part of them, together with what it uses of the file
  // that names it: addresses, the ranges of version 4, and the start of code. Both must outlive the
  // result.
  static DwarfSections OfSplit(const DwarfSections& split, const DwarfSections& whole);
  // Restricts a section to [begin, begin + size); false where the section is shorter.
  bool Narrow(Name name, uint64_t begin, uint64_t size);

  // Returns the section, empty where the file has none of this name.
  [[nodiscard]] Bytes of(Name name) const { return sections_[name]; }
  [[nodiscard]] uint64_t size() const;
  // Returns the lowest address of code: the linker dropped what claims to lie below.
  [[nodiscard]] Address text_begin() const { return text_begin_; }
  [[nodiscard]] uint64_t MemoryUsed() const { return memory_used_; }

 private:
  // Relocates the section, which has this number in its file.
  absl::Status Relocate(const ObjectSections& objects, size_t number, Name name);

  std::array<Bytes, kCount> sections_;
  std::array<std::unique_ptr<std::byte[]>, kCount> decompressed_;  // or relocated
  uint64_t memory_used_ = 0;
  Address text_begin_ = 0;
};

}  // namespace xenoscope::symbolizer
