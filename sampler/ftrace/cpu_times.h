// What this Linux says that its CPUs did.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tsc.h"
#include "recording/sample_format.h"

namespace xenoscope::sampler {

// Returns the CPUs of a text of /proc/stat (proc_stat(5)), without the instants. Lines that are cut
// off, or have other content, are passed over. O(text).
std::vector<recording::CpuTimesEntry> ParseCpuTimes(std::string_view text);

// Reads the first 64 KiB of the file, some 700 CPUs; none when it cannot be read.
std::vector<recording::CpuTimesEntry> ReadCpuTimes(const std::function<Tsc()>& read_tsc,
                                                   const std::string& path = "/proc/stat");

}  // namespace xenoscope::sampler
