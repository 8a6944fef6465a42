#include "recording/temporary_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace xenoscope::recording {

absl::StatusOr<TemporaryFile> TemporaryFile::Create() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* directory = std::getenv("TMPDIR");
  if (directory == nullptr || *directory == '\0') directory = "/tmp";
  const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  File file(fd >= 0 ? fd : memfd_create("xenoscope", MFD_CLOEXEC));
  if (!file.is_open()) return ErrnoError(errno, "cannot make a temporary file");
  return TemporaryFile(std::move(file));
}

absl::Status TemporaryFile::Write(Bytes bytes) {
  const int error = WriteAll(file_.fd(), bytes);
  if (error == 0) return absl::OkStatus();
  return ExhaustedError("no room for a temporary file ({}): free some, or set TMPDIR",
                        std::generic_category().message(error));
}

std::string TemporaryFile::path() const { return fmt::format("/proc/self/fd/{}", file_.fd()); }

}  // namespace xenoscope::recording
