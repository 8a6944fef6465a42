// Small text files: those that the kernel generates, as in /proc and /sys, and state of our own.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace xenoscope::sampler {

// Returns the first 64 KiB of the file without trailing white space; nothing when it cannot be
// read.
std::optional<std::string> ReadSmallFile(const std::string& path);

// Returns what follows `key` on the last line that begins with it, as in the files of /proc
// ("Uid:\t1000\t..."); nothing when there is no such line.
std::optional<std::string_view> FieldOf(std::string_view text, std::string_view key);

// Makes the text the content of the file, which gets the mode if it is new. Does not follow a
// symbolic link. Errors: the file cannot be written.
absl::Status WriteSmallFile(const std::string& path, std::string_view text, mode_t mode);

}  // namespace xenoscope::sampler
