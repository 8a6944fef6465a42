#include "base/file.h"

#include <cerrno>
#include <cstddef>

#include "base/error.h"

namespace xenoscope {

int WriteAll(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

absl::Status WriteError(int error, std::string_view what) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ExhaustedError("the disk is full: {}; free some space, or record elsewhere with -o",
                            what);
    case EFBIG:
      return PreconditionError(
          "a file has reached the largest size that this process may write: {}; raise it with "
          "ulimit -f",
          what);
    default:
      return ErrnoError(error, "{}", what);
  }
}

}  // namespace xenoscope
