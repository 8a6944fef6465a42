// Which build an ELF file is: by its build-id, or else by its content id. Others may change the
// file while it is read.
//
// Go's linker, and others without --build-id, make no build-id. The content id of such a file is of
// its first 64 MiB: their size in 8 bytes, then their CRC-32 in 4, both little-endian. These are 12
// bytes, where build-ids have 8, 16 or 20. As in .gnu_debuglink, the CRC guards against mistakes,
// not against forgers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace xenoscope::symbolizer {

// Reads the note NT_GNU_BUILD_ID of a 32- or 64-bit ELF file into `id`. Returns the size of the
// build-id in bytes, at most id.size(); 0 when the file has none, is damaged, or the build-id is
// longer.
// The file is read, never mapped, so that a file that becomes shorter meanwhile has no build-id and
// causes no SIGBUS. The function allocates no memory and makes no system call but pread(2), at most
// some thousand times.
size_t ReadBuildId(int fd, std::span<uint8_t> id);

// As ReadBuildId; but if the ELF file has no build-id, sets `id` to its content id. O(size) then,
// of 64 MiB at most.
size_t ReadFileId(int fd, std::span<uint8_t> id);

// Returns the content id of a file, hexadecimal. O(size), of 64 MiB at most.
std::string ContentIdOf(Bytes file);
// Returns whether this hexadecimal id has the length of a content id.
bool IsContentId(std::string_view id);

}  // namespace xenoscope::symbolizer
