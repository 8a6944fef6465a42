// The memory in which files are mapped, and what happens when such a file becomes shorter: the
// kernel ends a process that reads behind the new end of a mapped file with SIGBUS. The handler
// here puts zeros there and remembers the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace xenoscope {

// One mapping. Never freed, as a handler may look at it at any time, but used again.
struct MappedRange {
  std::atomic<uintptr_t> begin = 0;  // half-open; 0: in no use
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> is_truncated = false;  // a page of it could not be read
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// To be called for a mapping that begins at a whole page, before it is read. Installs the handler
// when called for the first time; faults of other memory go to the handler that was there before.
MappedRange* RegisterMapping(Bytes bytes, const std::string& path, uint64_t device, uint64_t inode);

// To be called before the mapping goes. Looks once more whether the file has become shorter.
void UnregisterMapping(MappedRange* range);

// The paths of the files that have become shorter than they were when they were mapped, or of which
// a page could not be read: those that are mapped, which are looked at now, and those that were.
// Sorted, each once. O(mappings).
std::vector<std::string> TruncatedMappings();

}  // namespace xenoscope
