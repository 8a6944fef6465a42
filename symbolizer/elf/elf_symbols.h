// A reader of the symbol tables of ELF files: .symtab, or .dynsym where .symtab was stripped.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

struct ElfSymbols {
  SymbolTable table;  // symbols at the addresses of the file; their names point into the file
  // Whether .symtab was stripped, so that functions which are not exported are missing.
  bool only_dynamic = false;
};

// Reads functions, and labels in executable sections (assembly code often has nothing else). Sizes
// are those of the file, cut at the end of the section. O(symbols). Error: no functions, with the
// reason.
absl::StatusOr<ElfSymbols> ReadElf(const ElfFile& file, std::string_view image);

// Returns whether the file is a livepatch for Xen: an object file whose sections Xen places when it
// loads the file.
bool IsLivepatch(const ElfFile& file);

// Reads the functions of a livepatch whose code Xen has put at `code`. Error: no functions, with
// the reason.
absl::StatusOr<ElfSymbols> ReadLivepatchElf(const ElfFile& file, std::string_view image,
                                            Address code);

}  // namespace xenoscope::symbolizer
