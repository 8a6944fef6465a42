// Names of the code through which programs call functions of other files, or functions that the
// loader chooses among (IFUNC): entries of the procedure linkage table, which linkers give none.
#pragma once

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

// Adds "puts@plt" for each entry of .plt, .plt.sec and .plt.got of an x86-64 file, by the slot that
// its jump reads and the relocation of that slot (System V ABI, AMD64 supplement, 5.2). Entries
// that cannot be told stay without a name. O(entries log relocations).
void AddPltEntries(const ElfFile& file, SymbolTable& table);

}  // namespace xenoscope::symbolizer
