// Keeps a process alive whose mapped files become shorter: the kernel sends SIGBUS to a process
// that reads behind the new end of a mapped file. The handler here puts zeros there, and remembers
// the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace xenoscope {

// One mapping. It is never freed, as a handler may look at it at any time; it is used again.
struct MappedRange {
  // The addresses [begin, end); begin is 0 when the object is not in use.
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> is_truncated = false;  // a page of it could not be read
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Registers a mapping that begins at a whole page, before it is read. The first call installs the
// handler; faults of other memory go to the handler that was there before.
MappedRange* RegisterMapping(Bytes bytes, const std::string& path, uint64_t device, uint64_t inode);

// Unregisters a mapping, before it is unmapped. Checks once more whether the file has become
// shorter.
void UnregisterMapping(MappedRange* range);

// Returns the paths of the files that have become shorter since they were mapped, or of which a
// page could not be read: files that are mapped, which are checked now, and files that were mapped.
// Sorted, each once. O(mappings).
[[nodiscard]] std::vector<std::string> TruncatedMappings();

}  // namespace xenoscope
