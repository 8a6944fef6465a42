// The processes that there are, with their programs' names and the files that they execute: what no
// perf event tells of processes that began earlier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mode.h"

namespace xenoscope::sampler {

struct ExecutableMap {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;  // in the file
  std::string path;
};

struct RunningProcess {
  uint32_t pid = 0;
  std::string name;
  std::vector<ExecutableMap> maps;
};

// The lines of /proc/PID/maps (proc_pid_maps(5)) that can be executed; others, and what is no such
// line, are left out.
std::vector<ExecutableMap> ReadMaps(std::string_view text);

// The same, of a file with such lines; none when it cannot be read.
std::vector<ExecutableMap> MapsOf(const std::string& path);

// Calls visit(pid, directory) for each process in `proc`.
void ForEachProcess(const std::string& proc,
                    absl::FunctionRef<void(uint32_t pid, const std::string& directory)> visit);

// Those in `proc`; one that ends meanwhile is left out.
std::vector<RunningProcess> ReadRunningProcesses(const std::string& proc = "/proc");

}  // namespace xenoscope::sampler
