#include "recording/plain_file.h"

#include <zstd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace xenoscope::recording {
namespace {

// Decompresses `from` into the file `to`, and returns the number of bytes written.
absl::StatusOr<uint64_t> DecompressInto(Bytes from, uint64_t limit, TemporaryFile& to) {
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
    XENOSCOPE_RETURN_IF_ERROR(to.Write(AsBytes({buffer.data(), out.pos})));
  }
  return written;
}

}  // namespace

absl::StatusOr<PlainFile> PlainFile::Open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored))
    return PlainFile(path, path, std::nullopt, DecompressionBudget());
  const std::string compressed = path + ".zst";
  if (!std::filesystem::is_regular_file(compressed, ignored)) {
    return NotFoundError("{} is missing", path);
  }
  return Decompress(compressed);
}

absl::StatusOr<PlainFile> PlainFile::Decompress(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t limit, DecompressionLimit(file.bytes().size()));
  XENOSCOPE_ASSIGN_OR_RETURN(TemporaryFile plain, TemporaryFile::Create());
  const absl::StatusOr<uint64_t> size = DecompressInto(file.bytes(), limit, plain);
  if (!size.ok()) return InContext(size.status(), path);
  std::string plain_path = plain.path();
  return PlainFile(std::move(plain_path), path, std::move(plain),
                   DecompressionBudget(file.bytes().size(), *size));
}

PlainFile PlainFile::OfTemporary(TemporaryFile made, std::string name) {
  std::string path = made.path();
  return {std::move(path), std::move(name), std::move(made), DecompressionBudget()};
}

bool PlainFile::IsCompressed(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file.ok() && Load<uint32_t>(file->bytes(), 0) == ZSTD_MAGICNUMBER;
}

}  // namespace xenoscope::recording
