// The build id of an ELF file that somebody else may be changing meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace xenoscope::symbolizer {

// Reads the note NT_GNU_BUILD_ID of an ELF file of either class into `id`. Its size in bytes, at
// most id.size(); 0 when the file has none, is damaged, or the id is longer.
// The file is read, never mapped: one that is cut off meanwhile gives no id, and no SIGBUS. Needs
// no memory but the stack's, makes no system call but pread(2), and no more than some thousand of
// these whatever the file says.
size_t ReadBuildId(int fd, std::span<uint8_t> id);

}  // namespace xenoscope::symbolizer
