// The sections of an ELF file that hold its debug information, decompressed where they are
// compressed (SHF_COMPRESSED, with zlib or zstd; older: .zdebug_NAME).
//
// Split DWARF (DWARF 5, 7.3.2) leaves most of it in other files, in sections whose names end with
// .dwo: NAME.dwo of one unit, or PROGRAM.dwp of all, whose index says which parts are of which
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
    kCount
  };
  enum class Kind : uint8_t { kWhole, kSplit };  // kSplit: the sections whose names end with .dwo

  // The file's bytes must outlive it. Two sections are decompressed at once. Errors: no debug
  // information; a section that is damaged, or decompresses to more than some ten times its size
  // (hostile: DWARF does not).
  static absl::StatusOr<DwarfSections> Read(const ElfFile& file, Bytes bytes,
                                            Kind kind = Kind::kWhole);

  // Those of a split file, or a part of them, with what it takes from the file that names it:
  // addresses, version 4's ranges, and where code begins. Both must outlive it.
  static DwarfSections OfSplit(const DwarfSections& split, const DwarfSections& whole);
  // Only [begin, begin + size) of a section from now on; false where it does not reach so far.
  bool Narrow(Name name, uint64_t begin, uint64_t size);

  // Empty where the file has no such section.
  Bytes of(Name name) const { return sections_[name]; }
  uint64_t size() const;
  // The lowest address of code: what is said to lie below was dropped by the linker.
  Address text_begin() const { return text_begin_; }
  uint64_t MemoryUsed() const { return memory_used_; }

 private:
  std::array<Bytes, kCount> sections_;
  std::array<std::unique_ptr<std::byte[]>, kCount> decompressed_;
  uint64_t memory_used_ = 0;
  Address text_begin_ = 0;
};

}  // namespace xenoscope::symbolizer
