// Code that processes run and that is in no file of theirs: what the kernel gives to all of them
// (the vDSO), and what compilers make at run time. The latter can tell their functions in
// /tmp/perf-PID.map (the kernel's tools/perf/Documentation/jit-interface.txt).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace xenoscope::sampler {

// The vDSO of 64-bit processes, an ELF file: this process's own. Empty when it has none.
std::vector<std::byte> ReadVdso();

// Together no longer than that: a recorder takes no more from an agent.
inline constexpr size_t kMaxPerfMapBytes = size_t{48} << 20;

// The maps of all processes in `proc`, each from its own /tmp and by the number that it has in its
// own namespace, and those in `tmp` of processes that have ended, as docs/recording-format.md says:
// "# PID", then those of the process's lines that are functions; "# cut" last when there would be
// more. Anybody can write to /tmp: of a process that is there only a file of its own user counts,
// read with that user's rights (users_file.h); of others a file that its owner could read.
std::string ReadPerfMaps(const std::string& proc = "/proc", const std::string& tmp = "/tmp",
                         size_t most_bytes = kMaxPerfMapBytes);

}  // namespace xenoscope::sampler
