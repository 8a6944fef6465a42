// A program or debug file without what no answer needs: for archives, which compress what is left.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace xenoscope::symbolizer {

// The file with zeros in the place of what is loaded to run (code, constants, variables, tables for
// unwinding), and of the sections of debug information that say where variables are, or repeat
// others. Symbols, PLTs, notes, links, functions and lines stay, and so does the `code` that is to
// be listed, parts of the file; all stays where it was. What is no ELF file, and what its headers
// do not describe, is as it was. O(size).
std::vector<std::byte> TrimmedFile(Bytes file, std::span<const Bytes> code);

}  // namespace xenoscope::symbolizer
