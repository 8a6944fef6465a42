// The memory of a process, for tests of the most that is held at one time (proc_pid_status(5)).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/base/config.h"

namespace xenoscope::sampler {

// The address sanitizer keeps freed memory, so that a peak means nothing.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
inline constexpr bool kHasMemoryPeak = false;
#else
inline constexpr bool kHasMemoryPeak = true;
#endif

// Bytes, of a line such as "VmHWM:\t    9876 kB" of /proc/PROCESS/status.
inline uint64_t MemoryFigure(const std::string& process, const std::string& what) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoull(line.substr(what.size() + 1)) << 10;
  }
  return 0;
}

inline uint64_t MemoryNow(const std::string& process) { return MemoryFigure(process, "VmRSS"); }
inline uint64_t MemoryPeak(const std::string& process) { return MemoryFigure(process, "VmHWM"); }

// Resets this process's peak to its present memory.
inline void BeginMemoryPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace xenoscope::sampler
