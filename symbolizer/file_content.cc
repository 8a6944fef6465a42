#include "symbolizer/file_content.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/decompression_limit.h"
#include "base/error.h"

namespace xenoscope::symbolizer {

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
  XENOSCOPE_ASSIGN_OR_RETURN(file.mapped_, MappedFile::Open(path, std::move(name)));
  file.identity_ = file.mapped_.identity();
  if (std::string_view(path).ends_with(".zst")) {
    const uint64_t size = file.mapped_.bytes().size();
    XENOSCOPE_ASSIGN_OR_RETURN(const uint64_t limit, DecompressionLimit(size));
    auto content = DecompressZstd(file.mapped_.bytes(), limit);
    if (!content.ok()) return InContext(content.status(), file.mapped_.name());
    file.decompressed_ = *std::move(content);
    file.extra_growth_ = DecompressionBudget(size, file.decompressed_.size());
    file.mapped_ = MappedFile();
  }
  return file;
}

}  // namespace xenoscope::symbolizer
