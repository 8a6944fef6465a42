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
#include "sampler/running_processes.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

std::optional<uid_t> OwnerOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_uid;
}

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

// Adds "# PID" and the lines of the file that can be functions. It may change while it is read, and
// be anything.
void AddFile(const std::string& path, std::optional<uid_t> owner, uint32_t pid, size_t most_bytes,
             std::string& maps, bool& cut) {
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  const bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                    (!owner || info.st_uid == *owner || info.st_uid == 0);
  std::string text;
  if (good) {
    const size_t left = most_bytes - std::min(most_bytes, maps.size());
    text.resize(std::min(left, static_cast<size_t>(info.st_size)));
    size_t had = 0;
    while (had < text.size()) {
      const ssize_t got = read(fd, text.data() + had, text.size() - had);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      had += static_cast<size_t>(got);
    }
    text.resize(had);
    if (left < static_cast<size_t>(info.st_size)) {
      cut = true;
      text.resize(text.rfind('\n') + 1);  // whole lines; 0 without any
    }
  }
  close(fd);
  if (text.empty()) return;
  maps += fmt::format("# {}\n", pid);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    maps.append(line).push_back('\n');
  }
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
  std::string maps;
  bool cut = false;
  std::vector<uint32_t> there;
  ForEachProcess(proc, [&](uint32_t pid, const std::string& process) {
    const auto owner = OwnerOf(process);
    if (!owner) return;  // it has just ended
    there.push_back(pid);
    AddFile(fmt::format("{}/root/tmp/perf-{}.map", process, NumberInNamespace(process, pid)), owner,
            pid, most_bytes, maps, cut);
  });
  std::ranges::sort(there);
  std::error_code error;
  for (fs::directory_iterator at(tmp, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    absl::string_view number = name;
    uint32_t pid = 0;
    if (!absl::ConsumePrefix(&number, "perf-") || !absl::ConsumeSuffix(&number, ".map") ||
        !absl::SimpleAtoi(number, &pid) || std::ranges::binary_search(there, pid)) {
      continue;
    }
    AddFile(at->path().string(), std::nullopt, pid, most_bytes, maps, cut);
  }
  if (cut) maps += "# cut\n";
  return maps;
}

}  // namespace xenoscope::sampler
