#include "recording/piece.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace xenoscope::recording {
namespace {

// An open file without a name, or -1 with errno.
int OpenUnnamedFile() {
  const char* directory = std::getenv("TMPDIR");
  if (directory == nullptr || *directory == '\0') directory = "/tmp";
  const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return fd >= 0 ? fd : memfd_create("xenoscope", MFD_CLOEXEC);
}

absl::Status WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return ExhaustedError("no room to decompress into ({}): free some, or set TMPDIR",
                            std::generic_category().message(errno));
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status Decompress(Bytes from, int to) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  std::vector<char> buffer(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  bool any = false;
  while (in.pos < in.size) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result) != 0) {
      if (any) break;  // what came before the damage is good
      return InvalidError("not zstd data: {}", ZSTD_getErrorName(result));
    }
    any = any || out.pos > 0;
    XENOSCOPE_RETURN_IF_ERROR(WriteAll(to, buffer.data(), out.pos));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Piece> Piece::Open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return Piece(path, -1);
  const std::string compressed = path + ".zst";
  if (!std::filesystem::is_regular_file(compressed, ignored)) {
    return NotFoundError("{} is missing", path);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(compressed));
  const int fd = OpenUnnamedFile();
  if (fd < 0) return ErrnoError(errno, "cannot make a temporary file for {}", compressed);
  Piece piece(fmt::format("/proc/self/fd/{}", fd), fd);
  XENOSCOPE_RETURN_IF_ERROR(InContext(Decompress(file.bytes(), fd), compressed));
  return piece;
}

Piece::~Piece() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace xenoscope::recording
