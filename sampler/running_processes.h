// The running processes, with their programs' names and the files that they execute: perf's events
// do not report processes that began before sampling.
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
  uint64_t offset = 0;  // offset in the file, in bytes
  uint64_t inode = 0;   // number of the file; 0: none
  std::string path;
};

struct RunningProcess {
  uint32_t pid = 0;
  std::string name;
  std::vector<ExecutableMap> maps;
};

struct RunningThread {
  uint32_t pid = 0;  // its process
  uint32_t tid = 0;
  std::string name;
  std::string cgroup;  // path of its process's cgroup; empty: not known
};

// Returns the executable lines of /proc/PID/maps (proc_pid_maps(5)); others, and malformed ones,
// are left out.
std::vector<ExecutableMap> ReadMaps(std::string_view text);

// Reads them from the file at `path`; none when it cannot be read.
std::vector<ExecutableMap> MapsOf(const std::string& path);

// Calls visit(pid, directory) for each process in `proc`.
void ForEachProcess(const std::string& proc,
                    absl::FunctionRef<void(uint32_t pid, const std::string& directory)> visit);

// Returns the processes in `proc`; one that ends meanwhile is left out.
std::vector<RunningProcess> ReadRunningProcesses(const std::string& proc = "/proc");

// Returns the process's number in the innermost of its namespaces, where its programs know it by
// that: the last one of "NSpid:\t1234\t7" (proc_pid_status(5)). `process` is its directory in
// /proc.
uint32_t NumberInNamespace(const std::string& process, uint32_t pid);

// Returns the path of the cgroup by the text of /proc/PID/cgroup (cgroups(7)): that of version 2,
// or else of the first hierarchy in which it is not in the root.
std::string CgroupOf(std::string_view text);

// Returns the threads of the processes in `proc`, by process; one that ends meanwhile is left out.
std::vector<RunningThread> ReadRunningThreads(const std::string& proc = "/proc");

}  // namespace xenoscope::sampler
