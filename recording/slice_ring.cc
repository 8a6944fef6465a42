#include "recording/slice_ring.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "recording/layout.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSlice = ".xeno";
constexpr std::string_view kPushed = ".pushed";
constexpr std::string_view kPattern = "####-##-##T##-##-##.###Z.xeno";  // #: a digit

bool IsSlice(std::string_view name) {
  return std::ranges::equal(name, kPattern, [](char c, char pattern) {
    return pattern == '#' ? c >= '0' && c <= '9' : c == pattern;
  });
}

std::string MarkOf(const std::string& name) {
  return name.substr(0, name.size() - kSlice.size()) + std::string(kPushed);
}

using FileNumbers = std::set<std::pair<dev_t, ino_t>>;

// Returns the bytes of the files that `counted` does not have yet, and adds these to it. Files that
// go away meanwhile count as empty.
uint64_t SizeOf(const std::string& path, FileNumbers& counted) {
  uint64_t size = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    struct stat file {};
    if (lstat(at->path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    const bool is_new = file.st_nlink == 1 || counted.emplace(file.st_dev, file.st_ino).second;
    if (is_new) size += static_cast<uint64_t>(file.st_size);
  }
  return size;
}

}  // namespace

absl::StatusOr<SliceRing> SliceRing::Open(const std::string& path, const Limits& limits) {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto above, Directory::OpenParent(path));
  if (!above.first.Has(above.second)) {
    XENOSCOPE_RETURN_IF_ERROR(above.first.Make(above.second).status());
  }
  XENOSCOPE_ASSIGN_OR_RETURN(Directory directory, Directory::Open(path));
  return SliceRing(std::move(directory), limits);
}

std::string SliceRing::NameAt(uint64_t utc_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kMsPerSecond = 1000;
  const uint64_t ms = utc_ns / kNsPerMs;
  const auto seconds = static_cast<time_t>(ms / kMsPerSecond);
  struct tm utc {};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}Z{}", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     ms % kMsPerSecond, kSlice);
}

absl::StatusOr<std::vector<std::string>> SliceRing::Names() const {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<std::string> names, directory_.List());
  std::erase_if(names, [](const std::string& name) { return !IsSlice(name); });
  std::ranges::sort(names);
  return names;
}

absl::StatusOr<std::vector<std::string>> SliceRing::Queued(const std::string& end) const {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<std::string> names, Names());
  std::erase_if(names, [&](const std::string& name) {
    return name >= end || directory_.Has(MarkOf(name)) || !CanBeRead(name);
  });
  return names;
}

bool SliceRing::CanBeRead(const std::string& name) const {
  return directory_.Has(fmt::format("{}/{}", name, kInfoFile));
}

absl::StatusOr<bool> SliceRing::RemoveRemains(const std::string& name) const {
  if (!directory_.Has(name) || CanBeRead(name)) return false;
  XENOSCOPE_RETURN_IF_ERROR(directory_.RemoveAll(name));
  return true;
}

void SliceRing::ShareSymbols(const std::string& name) const {
  const auto names = Names();
  if (!names.ok()) return;
  const auto at = std::ranges::lower_bound(*names, name);
  if (at == names->begin()) return;
  const auto symbols_of = [this](const std::string& slice) -> absl::StatusOr<Directory> {
    XENOSCOPE_ASSIGN_OR_RETURN(const Directory directory, directory_.OpenDirectory(slice));
    return directory.OpenDirectory(std::string(kSymbolsDirectory));
  };
  const auto symbols = symbols_of(name);
  const auto before = symbols_of(*std::prev(at));
  if (!symbols.ok() || !before.ok()) return;
  const auto files = symbols->List();
  if (!files.ok()) return;
  for (const std::string& file : *files) symbols->ShareEqualFile(file, *before).IgnoreError();
}

absl::Status SliceRing::MarkPushed(const std::string& name) const {
  if (!directory_.Has(name) || directory_.Has(MarkOf(name))) return absl::OkStatus();
  return directory_.Create(MarkOf(name)).status();
}

absl::StatusOr<size_t> SliceRing::Remove(const std::string& name) const {
  const bool pushed = directory_.Has(MarkOf(name));
  XENOSCOPE_RETURN_IF_ERROR(directory_.RemoveAll(name));
  if (pushed) XENOSCOPE_RETURN_IF_ERROR(directory_.Remove(MarkOf(name)));
  return pushed ? 0 : 1;
}

absl::StatusOr<size_t> SliceRing::Trim() const {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  uint64_t slices = 0;
  uint64_t bytes = 0;
  FileNumbers counted;
  size_t dropped = 0;
  for (size_t i = names.size(); i-- > 0;) {
    ++slices;
    if (limits_.bytes > 0) bytes += SizeOf(PathOf(names[i]), counted);
    const bool fits = (limits_.slices == 0 || slices <= limits_.slices) &&
                      (limits_.bytes == 0 || bytes <= limits_.bytes);
    if (fits || slices == 1) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(const size_t unpushed, Remove(names[i]));
    dropped += unpushed;
  }
  return dropped;
}

absl::StatusOr<size_t> SliceRing::RemoveOldest() const {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  return names.size() < 2 ? 0 : Remove(names.front());
}

}  // namespace xenoscope::recording
