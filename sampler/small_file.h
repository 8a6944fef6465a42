// A line or a page of text that the kernel makes up, as in /proc and /sys.
#pragma once

#include <optional>
#include <string>

namespace xenoscope::sampler {

// The first 64 KiB of the file without white space at the end; nothing when it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path);

}  // namespace xenoscope::sampler
