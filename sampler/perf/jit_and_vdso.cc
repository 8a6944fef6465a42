#include "sampler/perf/jit_and_vdso.h"

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
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/directory.h"
#include "base/file.h"
#include "sampler/open_as_user.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"
#include "symbolizer/text/perf_maps.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

// Returns the process's number in the innermost of its namespaces: the last one of
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

// Calls for every line among the first `most` bytes, without its end; sets `cut` if there are more
// bytes. The file may be long, so one block of it at a time is in memory, and a longer line, which
// no function has, is passed over. The file may change meanwhile.
void ForEachLineOf(int file, size_t most, bool& cut,
                   absl::FunctionRef<void(std::string_view)> use) {
  struct stat info {};
  if (fstat(file, &info) != 0) return;
  const auto size = static_cast<size_t>(info.st_size);
  constexpr size_t kPiece = size_t{64} << 10;
  std::string piece(kPiece, '\0');
  size_t process_dir = 0;       // bytes of a line that goes on
  bool is_passed_over = false;  // whether that line is passed over
  for (size_t left = std::min(most, size); left > 0;) {
    if (process_dir == piece.size()) {
      is_passed_over = true;
      process_dir = 0;
    }
    const ssize_t got =
        read(file, piece.data() + process_dir, std::min(left, piece.size() - process_dir));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    left -= static_cast<size_t>(got);
    std::string_view text(piece.data(), process_dir + static_cast<size_t>(got));
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      if (!std::exchange(is_passed_over, false)) use(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    process_dir = text.size();
    std::memmove(piece.data(), text.data(), process_dir);
  }
  if (most < size) {
    cut = true;
  } else if (process_dir > 0 && !is_passed_over) {
    use({piece.data(), process_dir});
  }
}

// Adds "# PID" and the lines of the file that are functions. Other lines are left out, as a user
// may have put anything there.
void AddFile(const File& file, uint32_t pid, size_t max_bytes, std::string& maps, bool& cut) {
  if (!file.is_open()) return;
  const size_t left = max_bytes - std::min(max_bytes, maps.size());
  bool has_begun = false;
  ForEachLineOf(file.fd(), left, cut, [&](std::string_view line) {
    if (!symbolizer::ReadPerfMapLine(line)) return;
    if (!std::exchange(has_begun, true)) maps += fmt::format("# {}\n", pid);
    maps.append(line).push_back('\n');
  });
}

// Adds the file of a running process, which belongs to the process's user.
void AddFileOf(const std::string& path, uint32_t pid, size_t max_bytes, std::string& maps,
               bool& cut) {
  const File process_dir(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process_dir.is_open()) return;
  // All is read through this directory, so that it belongs to one process even if that ends and
  // another gets its number.
  const std::string process = fmt::format("/proc/self/fd/{}", process_dir.fd());
  const auto status = ReadSmallFile(process + "/status");
  const auto ids = status ? ParseUserIds(*status) : std::nullopt;
  const File tmp = ids ? OpenProcessTmp(process) : File();
  if (!tmp.is_open()) return;
  const std::string name = fmt::format("perf-{}.map", NumberInNamespace(process, pid));
  AddFile(OpenAsUser(tmp.fd(), name, ids), pid, max_bytes, maps, cut);
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

std::string ReadPerfMaps(const std::string& proc, const std::string& tmp, size_t max_bytes) {
  const std::vector<std::string> none;
  std::string maps;
  maps.reserve(max_bytes);  // reserved so that it is never copied; unused memory costs nothing
  bool cut = false;
  std::vector<uint32_t> there;
  ForEachProcess(proc, [&](uint32_t pid, const std::string& process) {
    there.push_back(pid);
    AddFileOf(process, pid, max_bytes, maps, cut);
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
    AddFile(OpenAsUser(directory->fd(), name, std::nullopt), pid, max_bytes, maps, cut);
  }
  if (cut) maps += "# cut\n";
  return maps;
}

}  // namespace xenoscope::sampler
