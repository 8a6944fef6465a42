#include "symbolizer/elf/small_debug_file.h"

#include <lzma.h>

#include <string>
#include <utility>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

constexpr size_t kLargest = size_t{64} << 20;
constexpr uint64_t kMemory = uint64_t{128} << 20;  // for xz's dictionary

absl::StatusOr<std::string> DecompressXz(Bytes compressed) {
  std::string content;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMemory, 0) != LZMA_OK)
    return ExhaustedError("no memory for xz");
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): liblzma's bytes
  stream.next_in = reinterpret_cast<const uint8_t*>(compressed.data());
  stream.avail_in = compressed.size();
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK && content.size() < kLargest) {
    const size_t had = content.size();
    content.resize(had + (size_t{1} << 20));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    stream.next_out = reinterpret_cast<uint8_t*>(content.data() + had);
    stream.avail_out = content.size() - had;
    result = lzma_code(&stream, LZMA_FINISH);
    content.resize(content.size() - stream.avail_out);
  }
  lzma_end(&stream);
  if (result != LZMA_STREAM_END) return InvalidError("its .gnu_debugdata is damaged or too large");
  return content;
}

}  // namespace

absl::StatusOr<FileContent> SmallDebugFileOf(const ElfFile& elf) {
  const Bytes compressed = elf.Section(".gnu_debugdata");
  if (compressed.empty()) return NotFoundError("it has no .gnu_debugdata");
  XENOSCOPE_ASSIGN_OR_RETURN(std::string content, DecompressXz(compressed));
  return FileContent::FromString(std::move(content));
}

}  // namespace xenoscope::symbolizer
