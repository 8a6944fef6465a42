// Names for the procedure linkage table, whose entries linkers leave without a name. Programs call
// functions of other files through it, and functions that the loader chooses (IFUNC).
#pragma once

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

// Adds "puts@plt" for each entry of .plt, .plt.sec and .plt.got of an x86-64 file, by the slot that
// the entry's jump reads and the relocation of that slot (System V ABI, AMD64 supplement, 5.2).
// Entries for which that fails stay without a name. O(entries log relocations).
void AddPltEntries(const ElfFile& file, SymbolTable& table);

}  // namespace xenoscope::symbolizer
