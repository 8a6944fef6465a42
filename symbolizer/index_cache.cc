#include "symbolizer/index_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace xenoscope::symbolizer {
namespace {

namespace fs = std::filesystem;

constexpr const char* SuffixOf(IndexCache::Kind kind) {
  return kind == IndexCache::Kind::kFrames ? ".frames" : ".unwind";
}
constexpr mode_t kOwnerOnly = 0700;

bool WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace

std::optional<std::string> IndexCache::DefaultDirectory() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nothing changes the environment
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // Relative paths are to be ignored (XDG Base Directory, "Basics").
  if (cache != nullptr && *cache == '/') return fmt::format("{}/xenoscope", cache);
  const char* home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  if (home != nullptr && *home == '/') return fmt::format("{}/.cache/xenoscope", home);
  return std::nullopt;
}

std::string IndexCache::PathOf(const std::string& build_id, const FileIdentity& file,
                               Kind kind) const {
  return fmt::format("{}/{}-{:x}-{:x}-{:x}-{:x}{}", directory_,
                     build_id.empty() ? "no-build-id" : build_id, file.device, file.inode,
                     file.size, file.changed_ns, SuffixOf(kind));
}

std::optional<MappedFile> IndexCache::Find(const std::string& build_id, const FileIdentity& file,
                                           Kind kind) const {
  const std::string path = PathOf(build_id, file, kind);
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return std::nullopt;
  utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // it was used now
  return *std::move(mapped);
}

void IndexCache::Store(const std::string& build_id, const FileIdentity& file,
                       const std::string& bytes, Kind kind) const {
  if (bytes.empty() || bytes.size() > max_bytes_) return;
  std::error_code error;
  fs::create_directories(fs::path(directory_).parent_path(), error);
  mkdir(directory_.c_str(), kOwnerOnly);
  std::string temporary = directory_ + "/new-XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return;
  const bool written = WriteAll(fd, bytes);
  const bool closed = close(fd) == 0;
  if (!written || !closed || rename(temporary.c_str(), PathOf(build_id, file, kind).c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  EvictOldest();
}

void IndexCache::EvictOldest() const {
  struct Entry {
    fs::file_time_type used;
    uint64_t size = 0;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t together = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory_, error), end; !error && at != end;
       at.increment(error)) {
    // Other processes may remove and rename files meanwhile; a file that was left unfinished ages
    // as any other.
    std::error_code gone;
    const uint64_t size = at->file_size(gone);
    const auto used = at->last_write_time(gone);
    if (gone) continue;
    entries.push_back({used, size, at->path()});
    together += size;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (together <= max_bytes_) return;
    if (unlink(entry.path.c_str()) == 0) together -= entry.size;
  }
}

}  // namespace xenoscope::symbolizer
