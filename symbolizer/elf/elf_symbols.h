// Reads the symbol tables of ELF files: .symtab, and .dynsym where that was stripped.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

struct ElfSymbols {
  SymbolTable table;          // at the addresses in the file; names point into it
  bool only_dynamic = false;  // .symtab was stripped: functions that are not exported are missing
};

// Functions, and labels in executable sections (assembly code often says no more). Sizes are as the
// file says, at most to the end of the section. O(symbols). Error: no functions, and why.
absl::StatusOr<ElfSymbols> ReadElf(const ElfFile& file, std::string_view image);

// Whether the file is a livepatch for Xen: an object file, whose sections Xen places when it loads
// it.
bool IsLivepatch(const ElfFile& file);

// The functions of a livepatch whose code Xen has put at `code`. Error: no functions, and why.
absl::StatusOr<ElfSymbols> ReadLivepatchElf(const ElfFile& file, std::string_view image,
                                            Address code);

}  // namespace xenoscope::symbolizer
