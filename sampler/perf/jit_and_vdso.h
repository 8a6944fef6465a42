// Code of processes that is in none of their files: the vDSO, which the kernel gives to all, and
// the output of JIT compilers. JIT compilers can write their functions to /tmp/perf-PID.map (the
// kernel's tools/perf/Documentation/jit-interface.txt).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace xenoscope::sampler {

// Returns the vDSO of 64-bit processes, an ELF file: that of this process. Empty when it has none.
std::vector<std::byte> ReadVdso();

// Limit of the maps of all processes together, in bytes: a recorder takes no more from an agent.
inline constexpr size_t kMaxPerfMapBytes = size_t{48} << 20;

// Returns the maps of all processes in `proc`, each from its own /tmp under its pid in its own
// namespace, and those in `tmp` of processes that have ended, as docs/recording-format.md
// describes: "# PID", then those of the process's lines that are functions; "# cut" last when there
// would be more. Any user can write to /tmp: of a running process only a file of its own user is
// read, with that user's rights (open_as_user.h); other files only if their owner could read them.
std::string ReadPerfMaps(const std::string& proc = "/proc", const std::string& tmp = "/tmp",
                         size_t max_bytes = kMaxPerfMapBytes);

}  // namespace xenoscope::sampler
