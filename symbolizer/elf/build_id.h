// The build-id of an ELF file that others may change at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace xenoscope::symbolizer {

// Reads the note NT_GNU_BUILD_ID of a 32- or 64-bit ELF file into `id`. Returns the size of the
// build-id in bytes, at most id.size(); 0 when the file has none, is damaged, or the build-id is
// longer.
// The file is read, never mapped, so that a file that becomes shorter meanwhile has no build-id and
// causes no SIGBUS. The function allocates no memory and makes no system call but pread(2), at most
// some thousand times.
size_t ReadBuildId(int fd, std::span<uint8_t> id);

}  // namespace xenoscope::symbolizer
