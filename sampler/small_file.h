// Small text files that the kernel generates, as in /proc and /sys.
#pragma once

#include <optional>
#include <string>

namespace xenoscope::sampler {

// Returns the first 64 KiB of the file without trailing white space; nothing when it cannot be
// read.
std::optional<std::string> ReadSmallFile(const std::string& path);

}  // namespace xenoscope::sampler
