#include "recording/plain_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"

namespace xenoscope::recording {
namespace {

// Returns a file without a name; one that is not open, with errno set, on failure.
File OpenUnnamedFile() {
  const char* directory = std::getenv("TMPDIR");
  if (directory == nullptr || *directory == '\0') directory = "/tmp";
  const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  return File(fd >= 0 ? fd : memfd_create("xenoscope", MFD_CLOEXEC));
}

// Decompresses `from` into the file `to`, and returns the number of bytes written.
absl::StatusOr<uint64_t> DecompressInto(Bytes from, uint64_t limit, int to) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  std::vector<char> buffer(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  uint64_t written = 0;
  bool is_full = false;  // more output may be pending for the input so far
  while (in.pos < in.size || is_full) {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const size_t result = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(result) != 0) {
      if (written > 0) break;  // what came before the damage is good
      return InvalidError("not zstd data: {}", ZSTD_getErrorName(result));
    }
    written += out.pos;
    is_full = out.pos == out.size;
    if (written > limit) return DecompressionLimitError(limit);
    if (const int error = WriteAll(to, AsBytes({buffer.data(), out.pos})); error != 0) {
      return ExhaustedError("no room to decompress into ({}): free some, or set TMPDIR",
                            std::generic_category().message(error));
    }
  }
  return written;
}

}  // namespace

absl::StatusOr<PlainFile> PlainFile::Open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored))
    return PlainFile(path, path, File(), DecompressionBudget());
  const std::string compressed = path + ".zst";
  if (!std::filesystem::is_regular_file(compressed, ignored)) {
    return NotFoundError("{} is missing", path);
  }
  return Decompress(compressed);
}

absl::StatusOr<PlainFile> PlainFile::Decompress(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t limit, DecompressionLimit(file.bytes().size()));
  File plain = OpenUnnamedFile();
  if (!plain.is_open()) return ErrnoError(errno, "cannot make a temporary file for {}", path);
  const absl::StatusOr<uint64_t> size = DecompressInto(file.bytes(), limit, plain.fd());
  if (!size.ok()) return InContext(size.status(), path);
  std::string plain_path = fmt::format("/proc/self/fd/{}", plain.fd());
  return PlainFile(std::move(plain_path), path, std::move(plain),
                   DecompressionBudget(file.bytes().size(), *size));
}

bool PlainFile::IsCompressed(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file.ok() && Load<uint32_t>(file->bytes(), 0) == ZSTD_MAGICNUMBER;
}

}  // namespace xenoscope::recording
