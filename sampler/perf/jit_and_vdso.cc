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
#include <optional>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "sampler/open_as_user.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"
#include "symbolizer/text/perf_maps.h"

namespace xenoscope::sampler {
namespace {

// Calls for every line among the first `most` bytes, without its end; sets `cut` if there are more
// bytes. The file may be long, so one block of it at a time is in memory, and a longer line, which
// no function has, is passed over. The file may change meanwhile.
void ForEachLineOf(int file, size_t most, bool& cut,
                   absl::FunctionRef<void(std::string_view)> use) {
  struct stat info {};
  if (fstat(file, &info) != 0 || lseek(file, 0, SEEK_SET) != 0) return;
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

// Returns the bytes of the file from there on, at most so many; fewer where it ends.
std::string PieceAt(const File& file, size_t at, size_t most) {
  std::string piece(most, '\0');
  size_t got = 0;
  while (got < most) {
    const ssize_t n =
        pread(file.fd(), piece.data() + got, most - got, static_cast<off_t>(at + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  piece.resize(got);
  return piece;
}

// Adds a process's functions to a text.
class FunctionsOf {
 public:
  FunctionsOf(uint32_t pid, std::string& to) : pid_(pid), to_(to) {}

  // Adds the line, if it is a function; before the first one it adds whose they are.
  void Add(std::string_view line) {
    if (!symbolizer::ReadPerfMapLine(line)) return;
    if (!std::exchange(has_begun_, true)) to_ += fmt::format("# {}\n", pid_);
    to_.append(line).push_back('\n');
  }

 private:
  uint32_t pid_;
  std::string& to_;
  bool has_begun_ = false;
};

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

void PerfMapText::Add(const File& map, uint32_t pid) {
  if (!map.is_open()) return;
  text_.reserve(max_bytes_);  // so that it is never copied; unused memory costs nothing
  const size_t left = max_bytes_ - std::min(max_bytes_, text_.size());
  FunctionsOf functions(pid, text_);
  ForEachLineOf(map.fd(), left, is_cut_, [&](std::string_view line) { functions.Add(line); });
}

void PerfMapText::Add(std::string_view text) {
  if (text.size() > max_bytes_ - std::min(max_bytes_, text_.size())) {
    is_cut_ = true;
  } else {
    text_ += text;
  }
}

void PerfMapText::Add(const PerfMapText& other) {
  text_.reserve(max_bytes_);
  text_ += other.text_;
  is_cut_ = is_cut_ || other.is_cut_;
}

std::string ReadGrownPerfMap(const File& map, uint32_t pid, size_t most, PerfMapPlace& place) {
  constexpr size_t kTail = 256;
  if (place.read > 0 &&
      PieceAt(map, place.read - place.tail.size(), place.tail.size()) != place.tail) {
    place = {};
  }
  std::string piece = PieceAt(map, place.read, most);
  // A line that is being written is read later; one that is longer than `most` is no function.
  const size_t end = piece.rfind('\n');
  if (end != std::string::npos) {
    piece.resize(end + 1);
  } else if (piece.size() < most) {
    return "";
  }
  place.read += piece.size();
  place.tail += piece;
  place.tail.erase(0, place.tail.size() - std::min(kTail, place.tail.size()));
  std::string grown;
  FunctionsOf functions(pid, grown);
  for (const absl::string_view line : absl::StrSplit(piece, '\n')) {
    functions.Add({line.data(), line.size()});
  }
  return grown;
}

std::string PerfMapText::Take() && {
  if (is_cut_) text_ += "# cut\n";
  return std::move(text_);
}

PerfMapFile OpenPerfMap(const std::string& process, uint32_t pid) {
  PerfMapFile file{File(open(process.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), File()};
  if (!file.process.is_open()) return file;
  // All is read through this directory, so that it belongs to one process even if that ends and
  // another gets its number.
  const std::string opened = fmt::format("/proc/self/fd/{}", file.process.fd());
  const auto status = ReadSmallFile(opened + "/status");
  const auto ids = status ? ParseUserIds(*status) : std::nullopt;
  const File tmp = ids ? OpenProcessTmp(opened) : File();
  if (!tmp.is_open()) return file;
  const std::string name = fmt::format("perf-{}.map", NumberInNamespace(opened, pid));
  file.map = OpenAsUser(tmp.fd(), name, ids);
  return file;
}

}  // namespace xenoscope::sampler
