// An ELF file in memory, opened with libelf. The bytes must outlive it.
#pragma once

#include <gelf.h>
#include <libelf.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::symbolizer {

bool IsElf(Bytes bytes);

class ElfFile {
 public:
  // Opens a file. Error: not ELF, damaged, or an object file, whose functions have no addresses
  // yet.
  static absl::StatusOr<ElfFile> Open(Bytes bytes);
  // Opens a file that may be an object file, as those of split DWARF are.
  static absl::StatusOr<ElfFile> OpenAny(Bytes bytes);

  [[nodiscard]] Elf* get() const { return elf_.get(); }
  // Returns whether the type is ET_DYN: addresses are relative to where the file is loaded.
  [[nodiscard]] bool position_independent() const { return position_independent_; }
  // Returns whether the type is ET_REL: sections have no addresses yet (object_sections.h).
  [[nodiscard]] bool is_object() const { return object_; }
  // Returns the bytes of the section of this name, as they are in the file; empty: there is none.
  [[nodiscard]] Bytes Section(std::string_view name) const;
  // Returns the address, as linked, at which that section is loaded; 0: it is not, or is not there.
  [[nodiscard]] Address AddressOfSection(std::string_view name) const;
  // Returns the build-id of the note NT_GNU_BUILD_ID, in hexadecimal; empty when there is none.
  [[nodiscard]] std::string BuildId() const;

 private:
  // Returns the section of this name that has bytes in the file, and its header; null: none.
  Elf_Scn* FindSection(std::string_view name, GElf_Shdr& header) const;

  struct Closer {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  std::unique_ptr<Elf, Closer> elf_;
  bool position_independent_ = false;
  bool linked_ = false;
  bool object_ = false;
};

}  // namespace xenoscope::symbolizer
