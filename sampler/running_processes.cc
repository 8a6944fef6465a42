#include "sampler/running_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

// Removes the next word and the blanks around it, and returns the word.
std::string_view TakeWord(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::optional<uint64_t> Number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses "7f8a40000000-7f8a40021000 r-xp 00001000 fe:00 1234   /usr/bin/cat".
std::optional<ExecutableMap> ReadLine(std::string_view line) {
  const std::string_view range = TakeWord(line);
  const std::string_view rights = TakeWord(line);
  const auto offset = Number(TakeWord(line), 16);
  TakeWord(line);  // device
  const auto inode = Number(TakeWord(line), 10);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos || rights.size() < 4 || rights[2] != 'x' || !offset ||
      !inode) {
    return std::nullopt;
  }
  const auto begin = Number(range.substr(0, dash), 16);
  const auto end = Number(range.substr(dash + 1), 16);
  if (!begin || !end || *begin >= *end) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return ExecutableMap{*begin, *end, *offset, *inode,
                       line.empty() ? "[anonymous]" : std::string(line)};
}

}  // namespace

std::vector<ExecutableMap> ReadMaps(std::string_view text) {
  std::vector<ExecutableMap> maps;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (auto map = ReadLine(line)) maps.push_back(*std::move(map));
  }
  return maps;
}

std::vector<ExecutableMap> MapsOf(const std::string& path) {
  // If the process ends while it is read, there is an error, which the operator takes for the end.
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return ReadMaps(text.str());
}

void ForEachProcess(const std::string& proc,
                    absl::FunctionRef<void(uint32_t, const std::string&)> visit) {
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    uint32_t pid = 0;
    if (absl::SimpleAtoi(at->path().filename().string(), &pid)) visit(pid, at->path().string());
  }
}

std::vector<RunningProcess> ReadRunningProcesses(const std::string& proc) {
  std::vector<RunningProcess> processes;
  ForEachProcess(proc, [&](uint32_t pid, const std::string& directory) {
    const auto name = ReadSmallFile(directory + "/comm");
    if (name) processes.push_back({pid, *name, MapsOf(directory + "/maps")});
  });
  return processes;
}

uint32_t NumberInNamespace(const std::string& process, uint32_t pid) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::filesystem::path its = std::filesystem::read_symlink(process + "/ns/pid", error);
  if (error || own == its) return pid;
  const std::string status = ReadSmallFile(process + "/status").value_or(std::string());
  std::string_view inner = FieldOf(status, "NSpid:").value_or("");
  inner.remove_prefix(inner.rfind('\t') + 1);
  return static_cast<uint32_t>(Number(inner, 10).value_or(pid));
}

std::string CgroupOf(std::string_view text) {
  std::string_view first;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t names = line.find(':');
    const size_t path = line.find(':', std::min(names, line.size() - 1) + 1);
    if (path == std::string_view::npos) continue;
    const std::string_view found = line.substr(path + 1);
    if (line.starts_with("0::") && found != "/") return std::string(found);
    if (first.size() <= 1) first = found;
  }
  return std::string(first);
}

std::vector<RunningThread> ReadRunningThreads(const std::string& proc) {
  std::vector<RunningThread> threads;
  ForEachProcess(proc, [&](uint32_t pid, const std::string& directory) {
    const std::string cgroup = CgroupOf(ReadSmallFile(directory + "/cgroup").value_or(""));
    ForEachProcess(directory + "/task", [&](uint32_t tid, const std::string& task) {
      const auto name = ReadSmallFile(task + "/comm");
      if (name) threads.push_back({pid, tid, *name, cgroup});
    });
  });
  return threads;
}

}  // namespace xenoscope::sampler
