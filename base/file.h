// Open files, and writing to disks that may be full.
#pragma once

#include <unistd.h>

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope {

// Owns a file descriptor, and closes it at the end.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }
  // Returns the descriptor, which the caller closes from now on.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Writes all of the bytes. Returns 0, or the errno that stopped it; bytes that were written stay.
[[nodiscard]] int WriteAll(int fd, Bytes bytes);

// Returns the error that says why `what` failed ("cannot write /x", "/x is kept up to byte 7"), by
// its errno, and what to do.
// ResourceExhausted: the disk or the quota is full; FailedPrecondition: the largest size of a file
// that this process may write (RLIMIT_FSIZE) is reached.
[[nodiscard]] absl::Status WriteError(int error, std::string_view what);

}  // namespace xenoscope
