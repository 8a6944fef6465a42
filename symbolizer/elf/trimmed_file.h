// A program or debug file without the parts that no report reads: for archives, which compress the
// rest.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace xenoscope::symbolizer {

// Returns the file with zeros in place of what is loaded to run (code, constants, variables, tables
// for unwinding), and of the sections of debug information that describe variables or repeat
// others. Symbols, PLTs, notes, links, functions and lines stay, and so do the parts `code` of the
// file, which are to be listed. Nothing moves. A file that is not ELF, and what the headers do not
// describe, stays unchanged. O(size).
std::vector<std::byte> TrimmedFile(Bytes file, std::span<const Bytes> code);

}  // namespace xenoscope::symbolizer
