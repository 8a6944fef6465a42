#include "sampler/session_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace xenoscope::sampler {

absl::StatusOr<SessionLock> SessionLock::Take() {
  const char* const directory = access("/run", W_OK) == 0 ? "/run" : "/tmp";
  return TakeAt(fmt::format("{}/xenoscope.lock", directory));
}

absl::StatusOr<SessionLock> SessionLock::TakeAt(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoError(errno, "cannot open {}", path);
  SessionLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return PreconditionError("another xenoscope is recording on this host: end it first");
  }
  std::array<char, 64> text{};
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  if (n > 0) lock.left_.assign(text.data(), static_cast<size_t>(n));
  return lock;
}

SessionLock::~SessionLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SessionLock::Note(std::string_view text) const {
  if (ftruncate(fd_, 0) != 0 || pwrite(fd_, text.data(), text.size(), 0) < 0) {
    return ErrnoError(errno, "cannot write the lock file of recordings");
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
