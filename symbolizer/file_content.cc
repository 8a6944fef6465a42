#include "symbolizer/file_content.h"

#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/decompression_limit.h"
#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

constexpr uint64_t kXzMemory = uint64_t{128} << 20;  // for xz's dictionary

// Decompresses `bytes` (gzip with one member). Errors: as those of DecompressZstd.
absl::StatusOr<std::string> DecompressGzip(Bytes bytes, uint64_t largest) {
  // The last word is the size of the content.
  const auto size = bytes.size() < sizeof(uint32_t)
                        ? std::nullopt
                        : Load<uint32_t>(bytes, bytes.size() - sizeof(uint32_t));
  if (size && *size > largest) return DecompressionLimitError(largest);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (!decompressor) return ExhaustedError("no memory to decompress gzip");
  std::string content(size.value_or(0), '\0');
  const libdeflate_result result = libdeflate_gzip_decompress(
      decompressor.get(), bytes.data(), bytes.size(), content.data(), content.size(), nullptr);
  if (!size || result != LIBDEFLATE_SUCCESS) return InvalidError("damaged gzip data");
  return content;
}

struct Compression {
  std::string_view ending;
  absl::StatusOr<std::string> (*decompress)(Bytes bytes, uint64_t largest);
};
constexpr std::array<Compression, 3> kCompressions = {
    {{".zst", DecompressZstd}, {".xz", DecompressXz}, {".gz", DecompressGzip}}};

const Compression* CompressionOf(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kCompressions, [name](const Compression& of) { return name.ends_with(of.ending); });
  return found == kCompressions.end() ? nullptr : found;
}

}  // namespace

std::string_view WithoutCompression(std::string_view name) {
  if (const Compression* const of = CompressionOf(name)) name.remove_suffix(of->ending.size());
  return name;
}

absl::StatusOr<std::string> DecompressXz(Bytes bytes, uint64_t largest) {
  std::string content;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kXzMemory, 0) != LZMA_OK) {
    return ExhaustedError("no memory to decompress xz");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): liblzma's bytes
  stream.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK && content.size() <= largest) {
    constexpr size_t kFirst = size_t{1} << 20;
    const size_t had = content.size();
    content.resize(std::min<uint64_t>(had + had / 2 + kFirst, largest + 1));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    stream.next_out = reinterpret_cast<uint8_t*>(content.data() + had);
    stream.avail_out = content.size() - had;
    result = lzma_code(&stream, LZMA_FINISH);
    content.resize(content.size() - stream.avail_out);
  }
  lzma_end(&stream);
  if (content.size() > largest) return DecompressionLimitError(largest);
  if (result != LZMA_STREAM_END) return InvalidError("damaged xz data");
  return content;
}

absl::StatusOr<std::string> DecompressZstd(Bytes bytes, uint64_t largest) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          &ZSTD_freeDStream);
  if (!stream) return ExhaustedError("no memory to decompress zstd");
  std::string content;
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  size_t wanted = 1;  // 0: a frame has just ended
  while (in.pos < in.size || wanted != 0) {
    const size_t had = content.size();
    if (had > largest) return DecompressionLimitError(largest);
    content.resize(std::min<uint64_t>(had + had / 2 + ZSTD_DStreamOutSize(), largest + 1));
    ZSTD_outBuffer out{content.data(), content.size(), had};
    const size_t in_before = in.pos;
    wanted = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(wanted) != 0) {
      return InvalidError("damaged zstd data at byte {}: {}", in.pos, ZSTD_getErrorName(wanted));
    }
    content.resize(out.pos);
    if (wanted != 0 && in.pos == in_before && out.pos == had) {
      return InvalidError("the zstd data ends too early, at byte {}", in.pos);
    }
  }
  return content;
}

absl::StatusOr<FileContent> FileContent::Open(const std::string& path, std::string name) {
  FileContent file;
  const Compression* const compression = CompressionOf(name.empty() ? path : name);
  XENOSCOPE_ASSIGN_OR_RETURN(file.mapped_, MappedFile::Open(path, std::move(name)));
  file.identity_ = file.mapped_.identity();
  if (compression != nullptr) {
    const uint64_t size = file.mapped_.bytes().size();
    XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t limit, DecompressionLimit(size));
    auto content = compression->decompress(file.mapped_.bytes(), limit);
    if (!content.ok()) return InContext(content.status(), file.mapped_.name());
    file.decompressed_ = *std::move(content);
    file.extra_growth_ = DecompressionBudget(size, file.decompressed_.size());
    file.mapped_ = MappedFile();
  }
  return file;
}

}  // namespace xenoscope::symbolizer
