// Tables of frames from anywhere, with and without a right checksum: no crash, no endless chain,
// texts are the table's.
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
  constexpr size_t kCrcAt = 12;  // and what it is of comes after it
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
      // Every byte is there to be read.
      if (std::string(frame.function).size() + std::string(frame.file).size() > 2 * size)
        std::abort();
    }
  }
  return 0;
}
