// Fuzzes tables of frames, with and without a correct checksum. There is no crash and no endless
// chain; texts are the table's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/crc.h"
#include "symbolizer/frame_table.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbolizer = xenoscope::symbolizer;
  constexpr size_t kCrcAt = 12;  // offset of the CRC, which is of all that follows it
  std::vector<uint8_t> bytes(data, data + size);
  if (size > kCrcAt + 4) {
    const uint32_t crc = xenoscope::Crc32(std::as_bytes(std::span(bytes)).subspan(kCrcAt + 4));
    std::memcpy(&bytes[kCrcAt], &crc, sizeof crc);
  }
  const xenoscope::Bytes all = std::as_bytes(std::span(bytes));
  const auto table = symbolizer::FrameTable::Open(all);
  if (!table.ok()) return 0;
  std::vector<symbolizer::CodeFrame> frames;
  const auto starts = table->StartsIn(0, ~xenoscope::Address{0});
  if (starts.size() > size) std::abort();
  for (const xenoscope::Address start : starts) {
    if (table->Find(start, frames) != table->Knows(start)) std::abort();
    if (frames.size() > symbolizer::kMaxFrames) std::abort();
    for (const auto& frame : frames) {
      if (frame.function.size() > size || frame.file.size() > size) std::abort();
      // Every byte can be read.
      if (std::string(frame.function).size() + std::string(frame.file).size() > 2 * size)
        std::abort();
    }
  }
  return 0;
}
