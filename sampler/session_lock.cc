#include "sampler/session_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

// Returns " (process 1234)", the process that has the file locked: "1: FLOCK ADVISORY WRITE 1234
// 00:18:5678 0 EOF" is a line of /proc/locks (proc(5)), with the file system's device in
// hexadecimal and the inode. Empty where it is not listed.
std::string LockHolder(int fd) {
  struct stat file {};
  const auto locks = ReadSmallFile("/proc/locks");
  if (!locks || fstat(fd, &file) != 0) return "";
  const std::string where =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  for (const absl::string_view line : absl::StrSplit(*locks, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    constexpr size_t kKind = 1;
    constexpr size_t kPid = 4;
    constexpr size_t kWhere = 5;
    if (words.size() <= kWhere || words[kKind] != "FLOCK" || words[kWhere] != where) continue;
    return fmt::format(" (process {})", std::string_view(words[kPid].data(), words[kPid].size()));
  }
  return "";
}

}  // namespace

absl::StatusOr<SessionLock> SessionLock::Take() {
  const char* const directory = access("/run", W_OK) == 0 ? "/run" : "/tmp";
  return TakeAt(fmt::format("{}/xenoscope.lock", directory));
}

absl::StatusOr<SessionLock> SessionLock::TakeAt(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoError(errno, "cannot open {}", path);
  SessionLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return PreconditionError("another xenoscope{} is recording on this host: end it first",
                             LockHolder(fd));
  }
  std::array<char, 64> text{};
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  if (n > 0) lock.stale_note_.assign(text.data(), static_cast<size_t>(n));
  return lock;
}

SessionLock::~SessionLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SessionLock::WriteNote(std::string_view text) const {
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text.data(), text.size(), 0) < 0) {
    return ErrnoError(errno, "cannot write the lock file of recordings");
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
