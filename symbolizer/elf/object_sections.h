// What an object file (ET_REL) leaves to those who load it: where its sections with code are, and
// the relocations of its other sections. Source: ELF for x86-64 (psABI 1.0, 4.4).
//
// Modules of Linux are such files, and so are their debug files, which have the same sections with
// code, without the bytes (objcopy --only-keep-debug). Here sections with code follow each other in
// the order of the file, so an address means the same in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"

namespace xenoscope::symbolizer {

class ObjectSections {
 public:
  // Reads the headers of the file, whose bytes must outlive the result. O(sections). Of a file that
  // is linked, or damaged, no section has an address or relocations.
  ObjectSections(const ElfFile& elf, Bytes file);

  // Returns the address of the first byte of the section with this number; 0: it has no code. No
  // two sections touch: what ends one does not begin another.
  [[nodiscard]] Address AddressOf(size_t section) const;
  // Returns the lowest address of code; 0: there is none.
  [[nodiscard]] Address text_begin() const { return text_begin_; }

  [[nodiscard]] bool HasRelocations(size_t section) const;
  // Puts addresses and offsets where the section's relocations want them; `content` is all of the
  // section, decompressed. What refers to no symbol of this file becomes the addend; relocations of
  // variables of threads stay undone. O(relocations). Error: they are not of x86-64, or one of them
  // or its symbol is not in the file.
  absl::Status Relocate(size_t section, std::span<std::byte> content) const;

 private:
  struct Section {
    Address address = 0;
    size_t relocations = 0;  // number of the section that has them; 0: none
    size_t symbols = 0;      // of a section of relocations: that with their symbols
    Bytes content;           // of a section of relocations or symbols
  };

  std::vector<Section> sections_;  // by number
  Address text_begin_ = 0;
  bool is_x86_64_ = false;
};

}  // namespace xenoscope::symbolizer
