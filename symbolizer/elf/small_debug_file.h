// The debug file inside an ELF file, as in Fedora's: .gnu_debugdata, compressed with xz, holds the
// symbols that .dynsym lacks.
#pragma once

#include "absl/status/statusor.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

// Returns the debug file. Error: there is none, it is damaged, or decompresses to more than 64 MiB.
absl::StatusOr<FileContent> SmallDebugFileOf(const ElfFile& elf);

}  // namespace xenoscope::symbolizer
