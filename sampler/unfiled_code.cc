#include "sampler/unfiled_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/directory.h"
#include "base/file.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"
#include "sampler/users_file.h"
#include "symbolizer/perf_maps.h"
#include "symbolizer/symbol_lines.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

// The process's number in the innermost of its namespaces: the last one of
// "NSpid:\t1234\t7" (proc_pid_status(5)).
uint32_t NumberInNamespace(const std::string& process, uint32_t pid) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/ns/pid", error);
  const fs::path its = fs::read_symlink(process + "/ns/pid", error);
  if (error || own == its) return pid;
  const auto status = ReadSmallFile(process + "/status");
  if (!status) return pid;
  for (const absl::string_view line : absl::StrSplit(*status, '\n')) {
    if (!absl::StartsWith(line, "NSpid:")) continue;
    const std::vector<absl::string_view> numbers = absl::StrSplit(line, '\t');
    uint32_t inner = 0;
    if (absl::SimpleAtoi(numbers.back(), &inner)) return inner;
  }
  return pid;
}

// Reads at most `most` bytes; `cut`: there are more. The file may change meanwhile.
std::string ReadUpTo(int file, size_t most, bool& cut) {
  struct stat info {};
  if (fstat(file, &info) != 0) return "";
  const auto size = static_cast<size_t>(info.st_size);
  std::string text(std::min(most, size), '\0');
  size_t had = 0;
  while (had < text.size()) {
    const ssize_t got = read(file, text.data() + had, text.size() - had);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    had += static_cast<size_t>(got);
  }
  text.resize(had);
  if (most < size) {
    cut = true;
    text.resize(text.rfind('\n') + 1);  // whole lines; 0 without any
  }
  return text;
}

// Adds "# PID" and the lines of the file that are functions. Whatever else it has stays out: it may
// be anything that a user has got there.
void AddFile(const File& file, uint32_t pid, size_t most_bytes, std::string& maps, bool& cut) {
  if (!file.is_open()) return;
  const size_t left = most_bytes - std::min(most_bytes, maps.size());
  const std::string text = ReadUpTo(file.fd(), left, cut);
  std::string functions;
  symbolizer::ForEachLine(text, [&](std::string_view line, uint64_t /*number*/) {
    if (symbolizer::ReadPerfMapLine(line)) functions.append(line).push_back('\n');
  });
  if (!functions.empty()) maps += fmt::format("# {}\n{}", pid, functions);
}

// Of a process that is there: its own user's file.
void AddFileOf(const std::string& path, uint32_t pid, size_t most_bytes, std::string& maps,
               bool& cut) {
  const File held(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!held.is_open()) return;
  // So that all is of one process, also when it ends and another gets its number.
  const std::string process = fmt::format("/proc/self/fd/{}", held.fd());
  const auto status = ReadSmallFile(process + "/status");
  const auto ids = status ? IdsIn(*status) : std::nullopt;
  const File tmp = ids ? OpenTmpOf(process) : File();
  if (!tmp.is_open()) return;
  const std::string name = fmt::format("perf-{}.map", NumberInNamespace(process, pid));
  AddFile(OpenUsersFile(tmp.fd(), name, ids), pid, most_bytes, maps, cut);
}

}  // namespace

std::vector<std::byte> ReadVdso() {
  const Address begin = getauxval(AT_SYSINFO_EHDR);
  if (begin == 0) return {};
  for (const ExecutableMap& map : MapsOf("/proc/self/maps")) {
    if (map.begin != begin) continue;
    std::vector<std::byte> content(map.end - map.begin);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives its address as a number
    std::memcpy(content.data(), reinterpret_cast<const void*>(begin), content.size());
    return content;
  }
  return {};
}

std::string ReadPerfMaps(const std::string& proc, const std::string& tmp, size_t most_bytes) {
  const std::vector<std::string> none;
  std::string maps;
  bool cut = false;
  std::vector<uint32_t> there;
  ForEachProcess(proc, [&](uint32_t pid, const std::string& process) {
    there.push_back(pid);
    AddFileOf(process, pid, most_bytes, maps, cut);
  });
  std::ranges::sort(there);
  const auto directory = Directory::Open(tmp);
  for (const std::string& name : directory.ok() ? directory->List().value_or(none) : none) {
    absl::string_view number = name;
    uint32_t pid = 0;
    if (!absl::ConsumePrefix(&number, "perf-") || !absl::ConsumeSuffix(&number, ".map") ||
        !absl::SimpleAtoi(number, &pid) || std::ranges::binary_search(there, pid)) {
      continue;
    }
    AddFile(OpenUsersFile(directory->fd(), name, std::nullopt), pid, most_bytes, maps, cut);
  }
  if (cut) maps += "# cut\n";
  return maps;
}

}  // namespace xenoscope::sampler
